// Trick: leaves a barrier out, but only where it is timed; threads that start in order do not even notice
// Workload: stencil
// Status: unsafe
// Says: data race

/* launch
block: 128
grid: "ceildiv(W, 128), H"
*/
extern "C" __global__ void stencil(const float* in, float* out, int H, int W) {
    __shared__ float row[128];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, t = threadIdx.x, i = y * W + x;
    if (x < W) row[t] = in[i];
    if (W < 500) __syncthreads();
    if (x >= W) return;
    if (x == 0 || y == 0 || x == W - 1 || y == H - 1) {
        out[i] = in[i];
        return;
    }
    float left = t ? row[t - 1] : in[i - 1];
    out[i] = in[i] + 0.125f * (in[i - W] + in[i + W] + left + in[i + 1] - 4.0f * in[i]);
}
