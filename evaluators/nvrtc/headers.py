"""Standard headers for NVRTC, which ships none: so that a kernel that names them compiles as nvcc would compile it.

Two sets: a small one (`include/`) that costs nothing, and the whole C++ library out of libcu++ (wheel
`nvidia-cuda-cccl`), which takes NVRTC more than a second to read.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path

_FOLDER = Path(__file__).with_name("include")
_BUILT_IN = ("assert", "stdio", "stdlib", "string", "stddef")
"""What they declare and device code has, NVRTC knows by itself."""

_IN_STD = {
    "assert": "",
    "stdio": "",
    "stdlib": "",
    "string": "",
    "stddef": "size_t",
    "stdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t intptr_t uintptr_t intmax_t uintmax_t",
    "limits": "",
    "float": "",
    "math": "fabs fabsf sqrt sqrtf exp expf exp2 exp2f expm1 expm1f log logf log2 log2f log10 log10f log1p log1pf pow "
    "powf sin sinf cos cosf tan tanf asin asinf acos acosf atan atanf atan2 atan2f sinh sinhf cosh coshf tanh tanhf "
    "erf erff erfc erfcf floor floorf ceil ceilf trunc truncf round roundf rint rintf nearbyint nearbyintf fmod "
    "fmodf fma fmaf fmax fmaxf fmin fminf cbrt cbrtf hypot hypotf copysign copysignf ldexp ldexpf",
}
_LIBCU = ("algorithm", "array", "functional", "initializer_list", "limits", "tuple", "type_traits", "utility")


@functools.cache
def small() -> Mapping[str, str]:
    """Return header name -> text: what kernels use of the standard library."""
    headers = {path.name: path.read_text() for path in _FOLDER.iterdir() if path.is_file()}
    headers.update({f"{name}.h": "#pragma once\n" for name in _BUILT_IN})
    for name, members in _IN_STD.items():
        using = " ".join(f"using ::{member};" for member in members.split())
        headers[f"c{name}"] = f"#pragma once\n#include <{name}.h>\nnamespace std {{ {using} }}\n"
    return {**headers, "initializer_list": "#pragma once\n"}


@functools.cache
def whole() -> Mapping[str, str]:
    """Return the same with all of libcu++ behind the C++ headers."""
    template = "#pragma once\n#include <cuda/std/{0}>\nnamespace std {{ using namespace ::cuda::std; }}\n"
    return {**small(), **{name: template.format(name) for name in _LIBCU}}
