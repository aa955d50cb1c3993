"""The README of an export: what it is, how to build or import it, what it asks of its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evo.export.subject import Subject

if TYPE_CHECKING:
    from evo.export.package import Signature


def cpp(subject: Subject) -> str:
    """Return the README of the C++ program."""
    caches = "each with cold caches" if subject.timing.cold else "with warm caches"
    return f"""\
# {subject.workload.name}: {subject.origin}

{subject.workload.description}

A C++17 program that compiles `best.cu` with NVRTC for the GPU that is there, runs the stored cases as the search did,
checks the outputs and prints the latencies.

```console
$ cmake -S . -B build
$ cmake --build build
$ build/harness
```

To build it takes CMake 3.20, a C++17 compiler and CUDA's headers; if CMake does not find these, name their folder with
`-DCUDA_INCLUDE_DIR=…`. To run it takes an NVIDIA driver and `libnvrtc.so` of CUDA 12 or newer. `build/harness --help`
lists the options; `--compile-only --arch sm_90a` compiles the kernel on a machine without a GPU.

It returns 0 if every output is right, 1 if one is wrong or the kernel faults, 2 if nothing can be said.

- `best.cu`: the kernel, with its launch header.
- `plans.hpp`: the cases and launches, resolved for {subject.device.name}.
- `cases/NAME/`: inputs, expected outputs (float64, or the output's own type where it must be equal), and the scale of
  errors where the reference tells one. An element may be off by `factor * scale + slack` (`plans.hpp`).
- `include/`: standard headers for NVRTC, which brings none.

Latencies are medians with their 95 % interval: {subject.timing.launches} launches, {caches}, after
{subject.timing.warmup} or more to warm up; by CUDA events, all of a launch queued before the GPU may begin.
"""


def cupy(subject: Subject, signature: Signature) -> str:
    """Return the README of the package for CuPy."""
    return _package(subject, signature, "CuPy arrays", "cupy", "a function that takes and returns CuPy arrays")


def torch(subject: Subject, signature: Signature) -> str:
    """Return the README of the package for PyTorch."""
    what = (
        "a PyTorch custom operator (`torch.library.custom_op`), which works under `torch.compile` and has no gradient"
    )
    return _package(subject, signature, "PyTorch tensors", "torch", what)


def _package(subject: Subject, signature: Signature, arrays: str, library: str, what: str) -> str:
    arguments = "\n".join(f"- {line}" for line in signature.arguments)
    timed = "\n".join(f"- {_sizes(subject, name)}: {us:.4g} µs" for name, us in subject.latencies_us.items())
    call = (
        f"{signature.function}({', '.join((*signature.arrays.values(), *(f'{d}=…' for d in signature.dims.values())))})"
    )
    return f"""\
# {subject.workload.name}: {subject.origin}

{subject.workload.description}

A Python package of {what}. Put this folder where Python finds it, under a name of your choice:

```python
from PACKAGE import {signature.function}

result = {call}
```

{arguments}

It returns {signature.returns}.

Each call looks its launch up by the arrays' shapes, in `_kernel.py`: the launch header of `best.cu`, as Python. A
program is compiled (NVRTC) when a size first needs it and kept as long as the process lives. {arrays} of another
type, shape, strides or alignment are refused with an error (`Refused`); nothing is copied or converted unasked.

It needs an NVIDIA driver, {library}, and NVRTC with CUDA's headers: `pip install nvidia-cuda-nvrtc nvidia-cuda-runtime
nvidia-cuda-crt nvidia-cuda-cccl`, or a toolkit that `CUDA_HOME` names, or a library that `KERNEL_EVO_NVRTC` names.

Measured in the run, on {subject.device.name}:

{timed or "- nothing"}

The kernel was judged on the workload's cases; other sizes follow the same launch rules and were not tried.
"""


def _sizes(subject: Subject, name: str) -> str:
    dims = next(case.dims for case in subject.workload.cases if case.name == name)
    return f"{name} ({', '.join(f'{dim}={value}' for dim, value in dims.items())})"
