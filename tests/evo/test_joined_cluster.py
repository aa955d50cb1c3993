"""A search on a cluster that was started elsewhere: workers share neither working directory nor environment with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evaluators import actor
from evo.errors import PluginError, RunError
from evo.runner import cluster
from evo.store import Store
from tests.support import ray_cluster, scale

ROOT = Path(__file__).resolve().parents[2]

# A plug-in on a path that means something in the driver's folder alone, with a key that the driver alone has.
CLIENT = """
import os
from dataclasses import dataclass
from evo.records import ModelReply, ModelRequest
from tests.support.instant_client import InstantClient

@dataclass(frozen=True)
class KeyedClient(InstantClient):
    async def complete(self, request: ModelRequest) -> ModelReply:
        if os.environ.get("EVO_TEST_API_KEY") != "only the driver knows":
            return ModelReply("error", error="no key", fatal=True)
        return await super().complete(request)
"""
DEVICE = """
from dataclasses import dataclass
from tests.support import gpu_device

@dataclass(frozen=True)
class RelativeDevice(gpu_device.GpuDevice):
    pass
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with ray_cluster.started(tmp_path_factory.mktemp("elsewhere"), num_gpus=2) as found:
        yield found


def search(folder: Path, **changes: Any) -> dict[str, Any]:
    """Run a search in this folder, on a machine without a GPU of its own."""
    (folder / "client.py").write_text(CLIENT)
    (folder / "device.py").write_text(DEVICE)
    (folder / "run").mkdir()
    changes = {"device": "device.py", "models": [{"client": "client.py", "name": "keyed"}], **changes}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("RAY_", "CUDA_"))}
    ended = subprocess.run(
        [sys.executable, "-m", "tests.support.gpus_child", "run", "0", json.dumps(changes)],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT), "EVO_TEST_API_KEY": "only the driver knows"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert ended.returncode == 0, ended.stderr
    said: dict[str, Any] = json.loads(ended.stdout)
    return said


@pytest.mark.long
def test_a_search_on_its_gpus_needs_no_gpu_path_or_key_of_a_worker(address, tmp_path):
    budget = {"evaluations": 8, "cost_usd": None, "minutes": None}
    said = search(tmp_path, ray={"address": address}, budget=budget)
    assert said.get("error") is None
    assert (said["reason"], said["lost"]) == ("evaluations", [])
    with Store.read(tmp_path / "run") as store:
        assert store.check() == ()
        assert store.meta().device.uuid.startswith("GPU-"), "described by a worker that has one"
        gpus = {gpu for evaluation in store.evaluations().values() for gpu in evaluation.stage_seconds}
    assert gpus == {"GPU 0", "GPU 1"}


def test_no_cluster_at_an_address_is_an_error_that_names_it(tmp_path):
    said = search(tmp_path, ray={"address": "127.0.0.1:1"})
    assert said["error"].startswith("RunError: No Ray cluster answers at ray.address '127.0.0.1:1'")


def test_ray_client_is_refused_with_the_way_on():
    with pytest.raises(RunError, match=r"expected HOST:PORT or auto.*on a machine of the cluster"):
        cluster.joined_ray("ray://head:10001").__enter__()


def test_a_plugin_that_a_machine_of_the_cluster_lacks_is_named_with_that_machine():
    made = actor.EvaluatorActor("/nowhere/device.py", scale.setup())
    with pytest.raises(PluginError, match=r"on .*: .*no file /nowhere/device.py; .*every machine of the cluster"):
        made.describe()
    made.close()
