from __future__ import annotations

import pytest

from evaluators.builder import request
from evaluators.host import HostDevice
from evo import kernel as kernels
from evo import sandbox
from evo.records import Case, Device, Role, Status
from tests.support import scale

LARGE = Case("large", Role.PERFORMANCE, {"N": 4096})
ANY = Device("numpy", "NumPy", "numpy-1", "any")
RULES = [({"N": 4096}, {"BX": 128})]


def asked(kernel, config):
    return request(kernel, kernel.plan(scale.workload(), LARGE, ANY, config), "any")


def test_a_header_with_other_rules_on_as_many_lines_asks_for_the_same_build():
    tuned = kernels.parse(scale.kernel()).with_choose(RULES)
    again = tuned.with_choose([({"N": 4096}, {"BX": 64})])
    assert tuned.source != again.source
    assert asked(tuned, {"BX": 96}) == asked(again, {"BX": 96})
    assert asked(tuned, {"BX": 96}) != asked(tuned, {"BX": 32})


def test_every_line_of_the_code_keeps_its_number():
    kernel = kernels.parse(scale.kernel()).with_choose(RULES)
    sent = asked(kernel, None).source.splitlines()
    lines = kernel.source.splitlines()
    end = lines.index("*/") + 1
    assert sent[end:] == lines[end:]
    assert not any(sent[:end])


@pytest.mark.skipif(sandbox.available() != "", reason=f"no sandbox: {sandbox.available()}")
def test_a_compile_error_names_and_quotes_the_line_of_the_file():
    kernel = kernels.parse(scale.kernel().replace("2.0f * x[i]", "nothing[i]")).with_choose(RULES)
    binary = HostDevice().compile(asked(kernel, None))
    line = 1 + next(n for n, text in enumerate(kernel.source.splitlines()) if "nothing" in text)
    assert binary.status is Status.COMPILE_ERROR
    assert f"line {line}: 'nothing' was not declared" in binary.message
    assert f"{line} |     if (i < N) y[i] = nothing[i];" in binary.message
