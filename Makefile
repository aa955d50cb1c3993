# `make help` lists what there is. Every target sets up the virtual environment that it needs, once.

VENV := .venv
# Two at a time: more would disturb the tests that measure. A file's tests stay together and share what is costly.
PYTEST := $(VENV)/bin/python -m pytest -q -n 2 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-gpu lint clean

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

demo: $(VENV)/.ready-demo  ## watch a textbook kernel become a faster one, without a GPU and without a key
	@$(VENV)/bin/evo demo

test: $(VENV)/.ready-dev  ## the tests
	$(PYTEST)

test-long: $(VENV)/.ready-dev  ## the tests, the long ones included
	$(PYTEST) -m "not gpu and not local_llm"

test-gpu: $(VENV)/.ready-dev  ## what needs an NVIDIA GPU: tests, red team, figures; a report in gpu-report/
	$(VENV)/bin/python benchmarks/gpu_report.py gpu-report --seconds 1200

lint: $(VENV)/.ready-dev  ## ruff, mypy and the layers
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports

clean:  ## take the virtual environment away
	rm -rf $(VENV)

$(VENV)/.ready-demo: pyproject.toml .ci/setup
	@.ci/setup $(VENV) nvrtc
	@touch $@

$(VENV)/.ready-dev: pyproject.toml .ci/setup
	@.ci/setup $(VENV) nvrtc,dev
	@touch $@ $(VENV)/.ready-demo
