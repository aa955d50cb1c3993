// Honest: one thread for each point: what the kernels that hold on to the L2 cache are measured against
// Workload: stencil

/* launch
block: "32, 8"
grid: "ceildiv(W, 32), ceildiv(H, 8)"
*/
extern "C" __global__ void stencil(const float* in, float* out, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int i = y * W + x;
    if (x == 0 || y == 0 || x == W - 1 || y == H - 1) {
        out[i] = in[i];
        return;
    }
    float middle = in[i];
    float column = in[i - W] + in[i + W];
    float line = in[i - 1] + in[i + 1];
    out[i] = middle + 0.125f * (column + line - 4.0f * middle);
}
