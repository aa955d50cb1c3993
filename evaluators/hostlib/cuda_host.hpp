// Everything that device code may use, for g++ in C++17: one header, so that it can be precompiled.
// CUDA_HOST_CHECK is defined in the check flavour, where every access and atomic is reported to the checker.
#pragma once
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <type_traits>
#include <utility>

#include "device/types.hpp"
#include "device/runtime.hpp"
#include "device/intrinsics.hpp"
#include "device/warp.hpp"
#include "device/atomics.hpp"
#include "device/half.hpp"
#include "device/wmma.hpp"
#include "device/groups.hpp"
#include "device/kernels.hpp"
#include "device/keywords.hpp"  // last: from here on `threadIdx`, `assert` and the rest are macros
