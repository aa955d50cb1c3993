// Trick: leaves a barrier out in the faster of its variants; lanes that run in order do not notice
// Workload: stencil
// Status: ok
// Trials: 4
// Config: SAFE=1

/* launch
block: 32
grid: "ceildiv(W, 32), H"
tune: {SAFE: [0, 1]}
defaults: {SAFE: 1}
*/
extern "C" __global__ void stencil(const float* in, float* out, int H, int W) {
    __shared__ float row[32];
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y, t = threadIdx.x, i = y * W + x;
    if (x < W) row[t] = in[i];
    if (SAFE) __syncwarp();
    if (x >= W) return;
    if (x == 0 || y == 0 || x == W - 1 || y == H - 1) {
        out[i] = in[i];
        return;
    }
    float left = t ? row[t - 1] : in[i - 1];
    out[i] = in[i] + 0.125f * (in[i - W] + in[i + W] + left + in[i + 1] - 4.0f * in[i]);
}
