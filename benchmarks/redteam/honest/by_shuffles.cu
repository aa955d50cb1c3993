// Honest: transposes 32 x 32 tiles in registers, by shuffles alone
// Workload: transpose
// Long: yes

/* launch
block: 32
grid: "ceildiv(W, 32), ceildiv(H, 32)"
*/
extern "C" __global__ void transpose(const float* in, float* out, int H, int W) {
    int lane = threadIdx.x, x0 = blockIdx.x * 32, y0 = blockIdx.y * 32;
    float held[32];
#pragma unroll
    for (int r = 0; r < 32; ++r) held[r] = y0 + r < H && x0 + lane < W ? in[(y0 + r) * W + x0 + lane] : 0.0f;
    for (int s = 1; s < 32; s *= 2)
        for (int r = 0; r < 32; ++r) {
            if (r & s) continue;
            bool upper = lane & s;
            float mine = upper ? held[r] : held[r + s];
            float theirs = __shfl_xor_sync(0xffffffffu, mine, s);
            if (upper) held[r] = theirs;
            else held[r + s] = theirs;
        }
    for (int r = 0; r < 32; ++r)
        if (x0 + r < W && y0 + lane < H) out[(x0 + r) * H + y0 + lane] = held[r];
}
