// Honest: a shared tile without padding, whose columns are swapped by an exclusive or
// Workload: transpose
// Long: yes

/* launch
block: "32, 8"
grid: "ceildiv(W, 32), ceildiv(H, 32)"
*/
extern "C" __global__ void transpose(const float* in, float* out, int H, int W) {
    __shared__ float tile[32][32];
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (x < W && y + r < H) tile[r][threadIdx.x ^ r] = in[(y + r) * W + x];
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x, y = blockIdx.x * 32;
    for (int r = threadIdx.y; r < 32; r += 8)
        if (x < H && y + r < W) out[(y + r) * H + x] = tile[threadIdx.x][r ^ threadIdx.x];
}
