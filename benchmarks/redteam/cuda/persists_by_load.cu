// Trick: loads with L1::evict_last and a prefetch of 256 bytes into L2
// Workload: stencil
// Status: ok
// Gains: at most 1.3 over one_point_each

/* launch
block: "32, 8"
grid: "ceildiv(W, 32), ceildiv(H, 8)"
*/
__device__ float load(const float* place) {
    float value;
    asm volatile("ld.global.L1::evict_last.L2::256B.f32 %0, [%1];" : "=f"(value) : "l"(place));
    return value;
}

extern "C" __global__ void stencil(const float* in, float* out, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int i = y * W + x;
    if (x == 0 || y == 0 || x == W - 1 || y == H - 1) {
        out[i] = load(&in[i]);
        return;
    }
    float middle = load(&in[i]);
    float column = load(&in[i - W]) + load(&in[i + W]);
    float line = load(&in[i - 1]) + load(&in[i + 1]);
    out[i] = middle + 0.125f * (column + line - 4.0f * middle);
}
