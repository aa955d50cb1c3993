"""Where NVRTC is found: wheels of CUDA 13 and 12, toolkits, and a library that is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluators import nvrtc
from evaluators.nvrtc import stored
from evaluators.nvrtc.installation import locate
from evo.errors import DeviceError
from evo.records import CompileRequest, Status

FULL = (
    "#include <cuda_fp16.h>\n#include <mma.h>\n#include <tuple>\n"
    "__global__ void k(float* x) { std::tuple<int, float> t(1, x[1]); x[0] = __half2float(std::get<1>(t)); }"
)


def files(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def linked(source: Path, target: Path) -> None:
    """Make a folder with a link to each entry of another one."""
    target.mkdir(parents=True)
    for entry in source.iterdir():
        (target / entry.name).symlink_to(entry)


@pytest.fixture
def real() -> nvrtc.Installation:
    found = nvrtc.find()
    if found is None or not nvrtc.available():
        pytest.skip("NVRTC is not installed (extra `nvrtc`)")
    return found


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
@pytest.mark.parametrize(
    ("libraries", "includes"),
    [("lib64", "include"), ("targets/x86_64-linux/lib", "targets/x86_64-linux/include"), ("lib", "include")],
)
def test_a_toolkit_compiles_as_the_wheels_do(
    tmp_path: Path,
    real: nvrtc.Installation,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    libraries: str,
    includes: str,
) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(stored, "_folder", lambda: tmp_path / "cache")
    linked(real.library.parent, tmp_path / "cuda" / libraries)
    linked(real.includes[0], tmp_path / "cuda" / includes)
    found = locate({variable: str(tmp_path / "cuda")}, [])
    assert found is not None
    assert found.includes[0] == tmp_path / "cuda" / includes
    assert found.whole == real.whole
    monkeypatch.setattr(nvrtc, "find", lambda: found)
    binary = nvrtc.compile(CompileRequest(FULL, ("k",), {}, (), "sm_90"), cubin=True)
    assert binary.status is (Status.OK if found.whole else Status.COMPILE_ERROR), binary.message


def test_libcu_may_lie_in_the_include_folder_itself_or_in_cccl(tmp_path: Path) -> None:
    base = ("lib64/libnvrtc.so.12", "include/cuda_fp16.h")
    old = locate({"CUDA_HOME": str(files(tmp_path / "12", *base, "include/cuda/std/tuple"))}, [])
    new = locate({"CUDA_HOME": str(files(tmp_path / "13", *base, "include/cccl/cuda/std/tuple"))}, [])
    none = locate({"CUDA_HOME": str(files(tmp_path / "none", *base))}, [])
    assert old is not None
    assert new is not None
    assert none is not None
    assert (old.whole, old.includes) == (True, (tmp_path / "12" / "include",))
    assert (new.whole, new.includes) == (True, (tmp_path / "13" / "include", tmp_path / "13" / "include" / "cccl"))
    assert not none.whole


def test_wheels_come_first_and_cuda_13_before_12_each_with_its_own_headers(tmp_path: Path) -> None:
    home = files(tmp_path / "home", "lib64/libnvrtc.so.13", "include/cuda_fp16.h")
    wheels = files(
        tmp_path / "nvidia",
        "cuda_nvrtc/lib/libnvrtc.so.12",
        "cuda_nvrtc/lib/libnvrtc-builtins.so.12.8",
        "cuda_runtime/include/cuda_fp16.h",
        "cuda_cccl/include/cuda/std/tuple",
    )
    environment = {"CUDA_HOME": str(home)}
    twelve = locate(environment, [wheels])
    assert twelve is not None
    assert twelve.library == wheels / "cuda_nvrtc/lib/libnvrtc.so.12"
    assert twelve.includes == (wheels / "cuda_runtime/include", wheels / "cuda_cccl/include")
    files(wheels, "cu13/lib/libnvrtc.so.13")
    assert locate(environment, [wheels]) == twelve  # no headers of CUDA 13 yet
    files(wheels, "cu13/include/cuda_fp16.h")
    assert locate(environment, [wheels]) == twelve  # libcu++ is there, and CUDA 13 lacks it
    files(wheels, "cu13/include/cccl/cuda/std/tuple")
    thirteen = locate(environment, [wheels])
    assert thirteen is not None
    include = wheels / "cu13" / "include"
    assert (thirteen.library.name, thirteen.includes) == ("libnvrtc.so.13", (include, include / "cccl"))


def test_an_installation_without_libcu_is_better_than_none(tmp_path: Path) -> None:
    home = files(tmp_path / "home", "lib64/libnvrtc.so.13", "include/cuda_fp16.h")
    found = locate({"CUDA_HOME": str(home)}, [], [tmp_path / "nothing"])
    assert found is not None
    assert not found.whole


def test_of_two_versions_in_a_folder_the_newer_counts_and_cuda_11_does_not(tmp_path: Path) -> None:
    home = files(tmp_path, "include/cuda_fp16.h", "lib64/libnvrtc.so", "lib64/libnvrtc.so.11.2")
    environment = {"CUDA_HOME": str(home)}
    assert locate(environment, []) is None
    files(home, "lib64/libnvrtc.so.12.9.86", "lib64/libnvrtc.so.12.10.1", "lib64/libnvrtc.alt.so.13")
    found = locate(environment, [])
    assert found is not None
    assert found.library.name == "libnvrtc.so.12.10.1"


def test_a_library_without_headers_is_passed_over(tmp_path: Path) -> None:
    bare = files(tmp_path / "bare", "lib64/libnvrtc.so.13")
    whole = files(tmp_path / "whole", "lib64/libnvrtc.so.13", "include/cuda_fp16.h")
    found = locate({"CUDA_HOME": str(bare), "CUDA_PATH": str(whole)}, [], [])
    assert found is not None
    assert found.library.is_relative_to(whole)


@pytest.mark.parametrize("layout", ["lib64/libnvrtc.so.12", "nvidia/cuda_nvrtc/lib/libnvrtc.so.12"])
def test_a_library_that_is_named_wins_with_the_headers_near_it(tmp_path: Path, layout: str) -> None:
    other = files(tmp_path / "other", "lib64/libnvrtc.so.13", "include/cuda_fp16.h")
    headers = "nvidia/cuda_runtime/include" if "nvidia" in layout else "include"
    mine = files(tmp_path / "mine", layout, f"{headers}/cuda_fp16.h")
    found = locate({"CUDA_HOME": str(other), "KERNEL_EVO_NVRTC": str(mine / layout)}, [])
    assert found == nvrtc.Installation(mine / layout, (mine / headers,), False)


def test_a_name_that_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DeviceError, match="no such file"):
        locate({"KERNEL_EVO_NVRTC": str(tmp_path / "libnvrtc.so.13")}, [])
    bare = files(tmp_path, "a/b/c/d/libnvrtc.so.13")
    with pytest.raises(DeviceError, match="no headers"):
        locate({"KERNEL_EVO_NVRTC": str(bare / "a/b/c/d/libnvrtc.so.13")}, [])


def test_a_library_that_cannot_be_loaded_is_named(
    tmp_path: Path, real: nvrtc.Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "_folder", lambda: tmp_path / "cache")
    (tmp_path / "libnvrtc.so.13").write_text("no library")
    broken = nvrtc.Installation(tmp_path / "libnvrtc.so.13", real.includes, True)
    monkeypatch.setattr(nvrtc, "find", lambda: broken)
    with pytest.raises(DeviceError, match=r"cannot be loaded: .*libnvrtc\.so\.13.*"):
        nvrtc.compile(CompileRequest(FULL, ("k",), {}, (), "sm_90"), cubin=True)


def test_without_any_the_two_ways_to_get_one_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "find", lambda: None)
    assert not nvrtc.available()
    with pytest.raises(DeviceError, match=r"kernel-evo\[nvrtc\].*CUDA_HOME"):
        nvrtc.compile(CompileRequest(FULL, ("k",), {}, (), "sm_90"), cubin=True)
