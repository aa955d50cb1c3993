"""The README of an export: what it is, how to build or import it, what it asks of its arguments."""

from __future__ import annotations

from evo.export.subject import Subject


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
