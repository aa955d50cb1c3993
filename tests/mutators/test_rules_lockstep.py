"""Merging threads must keep the meaning of any kernel without a race: each is run before and after, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from mutators.rules.coarsen import coarsened
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
    for contiguous in (True, False):
        merged = coarsened(source, "f", "x", contiguous, np.random.default_rng(0)).source
        for items in (1, 4, 16):
            assert bits(merged, lab, {"ITEMS_X": items}) == expected, merged
