"""Merging threads must keep the meaning of any kernel without a race: each is run before and after, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from evo.kernel import parse
from mutators.rules.coarsen import coarsened
from mutators.rules.syntax import Unfit
from tests.support.offline import ELEMENTWISE, bits, lab_for

HEADER = '/* launch\nblock: 64\ngrid: "ceildiv(N, 64)"\n*/\n'
SIGNATURE = 'extern "C" __global__ void f(const float* a, const int* idx, float* out, int N)'
INDEX = "int i = blockIdx.x * blockDim.x + threadIdx.x;"

BODIES = {
    "two returns": f"""{INDEX} if (i >= N) return;
        float v = a[i]; if (v < 0.0f) {{ out[i] = -v; return; }}
        out[i] = v + 1.0f;""",
    "a while loop that items leave at different times": f"""{INDEX}
        if (i < N) {{
            int n = idx[i]; int steps = 0;
            while (n > 1) {{ n = n % 2 ? 3 * n + 1 : n / 2; ++steps; }}
            out[i] = steps;
        }}""",
    "a do loop": f"{INDEX} if (i < N) {{ float v = a[i]; do {{ v *= 0.5f; }} while (fabsf(v) > 0.1f); out[i] = v; }}",
    "a private array": f"""{INDEX}
        float w[3] = {{0.0f, 0.0f, 0.0f}};
        if (i < N) {{
            for (int d = -1; d <= 1; ++d) {{ int j = min(max(i + d, 0), N - 1); w[d + 1] += a[j] * (d + 2); }}
            out[i] = w[0] + w[1] * w[2];
        }}""",
    "several declarations at once, unsigned": """
        const unsigned int i = blockIdx.x * blockDim.x + threadIdx.x, n = N;
        float s = 0.0f, t = 1.0f;
        if (i < n) { s += a[i]; t -= a[i]; out[i] = s * t; }""",
    "a break that not all items take": f"""{INDEX}
        if (i < N) {{
            int found = -1;
            for (int k = 0; k < N; ++k) {{ if (a[k] > a[i]) {{ found = k; break; }} }}
            out[i] = found;
        }}""",
    "a break that all take": f"""{INDEX}
        if (i < N) {{
            float s = 0.0f;
            for (int k = 0; k < N; ++k) {{ if (k == 5) break; s += a[k] * a[i]; }}
            out[i] = s;
        }}""",
    "a continue that some take": f"""{INDEX}
        if (i < N) {{
            float s = 0.0f;
            for (int k = 0; k < 8; ++k) {{ if ((idx[i] + k) % 3 == 0) continue; s += a[(i + k) % N]; }}
            out[i] = s;
        }}""",
    "a barrier and a mirrored index": f"""__shared__ float tile[64];
        {INDEX}
        tile[threadIdx.x] = i < N ? a[i] : 0.0f;
        __syncthreads();
        float v = tile[blockDim.x - 1 - threadIdx.x];
        __syncthreads();
        tile[threadIdx.x] = v * 2.0f;
        __syncthreads();
        if (i < N) out[i] = tile[63 - threadIdx.x] + v;""",
    "a vector type": f"""{INDEX}
        if (i < N) {{
            float4 v = make_float4(a[i], 1.0f, 2.0f, 3.0f);
            v.x += v.w; v.y = v.x * 2.0f; out[i] = v.x + v.y;
        }}""",
    "pointers": f"""{INDEX}
        if (i < N) {{ const float* p = a + i; float* q = out; q += i; *q = p[0] + *p; }}""",
    "a loop with the block's stride": """
        if (blockIdx.x == 0) {
            for (int c = threadIdx.x; c < N; c += blockDim.x) {
                float s = a[c];
                for (int k = 0; k < 3; ++k) s = s * 2 + c;
                out[c] = s;
            }
        }""",
    "a loop whose variable runs backwards": """
        if (blockIdx.x == 0) for (int c = N - 1 - (int)threadIdx.x; c >= 0; c -= blockDim.x) { out[c] = a[c] + c; }""",
    "a factor that changes": f"""{INDEX}
        int step = 1; float s = 0.0f;
        if (i < N) {{
            for (int k = 0; k < 4; ++k) {{ step *= 2; int j = i * step; s += a[j % N]; }}
            out[i] = s;
        }}""",
    "an index that is assigned anew": f"{INDEX} i = N - 1 - i; if (i >= 0) out[i] = a[i] * i;",
    "an index that moves on": f"{INDEX} for (; i < N; i += blockDim.x * gridDim.x) out[i] = a[i] - i;",
    "a condition kept in a variable": f"""{INDEX}
        bool inside = i < N; float v = inside ? a[i] : 0.0f; if (inside) out[i] = v + 1;""",
    "wide and narrow casts": f"""{INDEX}
        if (i < N) {{
            size_t off = (size_t)i * 2 + 1; int low = (signed char)(i * 3); out[off / 2] = low + (float)i;
        }}""",
    "an index below zero": """
        unsigned left = threadIdx.x - 1;
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        int before = i - 1;
        if (i < N) out[i] = (left < 5u ? 1.0f : 2.0f) + (before >= 0 ? a[before] : 0.0f);""",
    "an else branch": f"""{INDEX}
        if (i < N) {{
            if (idx[i] > 20) {{ out[i] = a[i]; }} else if (i % 2) out[i] = 3.0f; else {{ out[i] = -a[i]; }}
        }}""",
    "uniform control": f"""{INDEX}
        float s = 0.0f; int n = N > 60 ? 3 : 5;
        while (n > 0) {{ s += n; n--; }}
        if (N > 100) {{ s += 0.5f; }} else s -= 0.5f;
        if (i < N) out[i] = a[i] * s;""",
    "uniform values that turn into the item's": f"""{INDEX}
        float m = 0.0f; int last = 0;
        for (int k = 0; k < 6; ++k) {{ if (i % (k + 1) == 0) last = k; m = m * 0.5f + last; }}
        if (i < N) out[i] = m;""",
    "comments and pragmas": f"""{INDEX} // the index
        if (i < N) {{
            float s = 0.0f; /* a sum */
            #pragma unroll 4
            for (int k = 0; k < N; ++k) {{ s += a[k]; /* more */ }}
            // done
            out[i] = s * a[i];
        }}""",
    "an index in odd spacing": """int i = blockIdx . x * blockDim/**/.x + threadIdx
            .x;
        if (i < N) out[i] = a[i];""",
    "a shared scalar": f"""__shared__ float last;
        {INDEX}
        if (threadIdx.x == blockDim.x - 1) last = i < N ? a[i] : -1.0f;
        __syncthreads();
        if (i < N) out[i] = last + a[i];""",
    "a factor with a fraction": f"""{INDEX}
        if (i < N) {{ int half = i * 0.5f; int more = i + 0.5f; out[i] = half - more; }}""",
    "an index from below zero, compared with an unsigned number": """
        int i = blockIdx.x * blockDim.x + threadIdx.x; unsigned n = 7; int x = (int)threadIdx.x - 2;
        float v = 0.0f;
        if (x < n) v = 1.0f;
        if (x >= blockDim.x - 5) v += 2.0f;
        if (i < N) out[i] = v;""",
    "a pointer from below the array": """
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        const float* before = a + (i - 1);
        size_t far = threadIdx.x - 1;
        if (i < N) out[i] = (i > 0 ? *before : 0.0f) + (far < 70 ? 1.0f : 0.0f);""",
    "an index over two axes": """
        int t = threadIdx.y * blockDim.x + threadIdx.x;
        int i = (blockIdx.y * gridDim.x + blockIdx.x) * (blockDim.x * blockDim.y) + t;
        if (i < N) out[i] = a[i] + t;""",
    "several blocks in one loop": f"""{INDEX}
        float s = 0.0f;
        for (int k0 = 0; k0 < N; k0 += 16) {{ for (int k = k0; k < min(k0 + 16, N); ++k) {{ s += a[k] * idx[k]; }} }}
        if (i < N) {{ out[i] = s + a[i]; }}""",
}


@pytest.fixture(scope="module")
def lab():
    with lab_for(ELEMENTWISE) as opened:
        yield opened


@pytest.mark.parametrize("name", BODIES)
def test_a_kernel_means_the_same_when_its_threads_are_merged(name, lab):
    source = f"{HEADER}{SIGNATURE} {{\n{BODIES[name]}\n}}\n"
    expected = bits(source, lab)
    for contiguous, items in ((True, 16), (False, 4)):
        merged = coarsened(source, "f", "x", contiguous, np.random.default_rng(0)).source
        assert bits(merged, lab, {"ITEMS_X": items}) == expected, merged


HELPER = "__device__ void fill(float* into, float value) { into[1] = value; }\n"


def test_an_array_that_a_function_fills_is_one_per_item(lab):
    body = f"{INDEX} float w[2] = {{0.0f, 0.0f}}; if (i < N) {{ fill(w, a[i]); out[i] = w[1] - w[0]; }}"
    source = f"{HEADER}{HELPER}{SIGNATURE} {{\n{body}\n}}\n"
    merged = coarsened(source, "f", "x", True, np.random.default_rng(0)).source
    assert bits(merged, lab, {"ITEMS_X": 8}) == bits(source, lab)


UNFIT = {
    "a shuffle": f"{INDEX} float v = __shfl_down_sync(0xffffffffu, a[i % N], 1); if (i < N) out[i] = v;",
    "a spin lock": f"{INDEX} while (atomicCAS((int*)out, 0, 1) != 0) {{}} if (i < N) out[i] = a[i];",
    "a barrier in a branch": f"{INDEX} if (i < N) {{ __syncthreads(); out[i] = a[i]; }}",
    "a barrier after some have returned": f"{INDEX} if (i >= N) return; __syncthreads(); out[i] = a[i];",
    "a return from within a loop": f"{INDEX} for (int k = 0; k < 3; ++k) {{ if (i >= N) return; out[i] = a[i]; }}",
    "the index as a whole": "dim3 t = threadIdx; out[t.x] = a[t.x];",
    "an address of a variable": f"{INDEX} float v = 0.0f; float* p = &v; *p = a[i % N]; if (i < N) out[i] = v;",
    "a name that hides another": f"{INDEX} float v = 1.0f; if (i < N) {{ float v = a[i]; out[i] = v; }}",
    "a jump": f"{INDEX} if (i >= N) goto end; out[i] = a[i]; end:;",
    "a switch": f"{INDEX} if (i < N) switch (idx[i]) {{ case 0: out[i] = 1.0f; break; default: out[i] = 2.0f; }}",
    "an assignment inside an expression": f"{INDEX} int k = 0; if (i < N) out[i] = a[k++] + k;",
    "a lambda": f"{INDEX} auto g = [&](int k) {{ return a[k]; }}; if (i < N) out[i] = g(i);",
    "no use of the index": "out[0] = a[0];",
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_kernel_whose_items_cannot_go_in_lockstep_is_left_alone(name):
    source = f"{HEADER}{SIGNATURE} {{\n{UNFIT[name]}\n}}\n"
    with pytest.raises(Unfit):
        coarsened(source, "f", "x", True, np.random.default_rng(0))


@pytest.mark.parametrize(
    "outside",
    [
        "#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)\n",
        "#define AT(i) a[i]\n",
        "__device__ int index() { return threadIdx.x; }\n",
        "__device__ void twice(float& x) { x *= 2; }\n",
    ],
)
def test_macros_and_functions_that_may_hide_the_item_stop_the_rule(outside):
    source = f"{HEADER}{outside}{SIGNATURE} {{ {INDEX} if (i < N) out[i] = a[i]; }}\n"
    with pytest.raises(Unfit):
        coarsened(source, "f", "x", True, np.random.default_rng(0))


def test_threads_are_merged_once_along_an_axis():
    source = f"{HEADER}{SIGNATURE} {{ {INDEX} if (i < N) out[i] = a[i]; }}\n"
    once = coarsened(source, "f", "x", True, np.random.default_rng(0)).source
    with pytest.raises(Unfit, match="already"):
        coarsened(once, "f", "x", False, np.random.default_rng(0))


def test_rules_that_tuning_wrote_keep_holding():
    source = HEADER.replace("*/", 'tune: {BX: [4, 64]}\nchoose:\n  - {when: "N == 9", set: {BX: 4}}\n*/').replace(
        "64\ngrid", "BX\ngrid"
    )
    source = f"{source}{SIGNATURE} {{ {INDEX} for (; i < N; i += blockDim.x * gridDim.x) out[i] = a[i]; }}\n"
    seed = next(s for s in range(99) if np.random.default_rng(s).choice((4, 8)) == 8)
    kernel = parse(coarsened(source, "f", "x", True, np.random.default_rng(seed)).source)
    assert kernel.config_for({"N": 9}) == {"BX": 4, "ITEMS_X": 4}
    assert kernel.config_for({"N": 10}) == {"BX": 4, "ITEMS_X": 4}
