// Honest: the same stencil with other operations: half of the middle and an eighth of each neighbour
// Workload: stencil
// Long: yes

/* launch
block: "16, 16"
grid: "ceildiv(W, 16), ceildiv(H, 16)"
*/
__constant__ float weights[2] = {0.5f, 0.125f};

extern "C" __global__ void stencil(const float* in, float* out, int H, int W) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y, i = y * W + x;
    if (x >= W || y >= H) return;
    auto inside = [=](int at, int size) { return at > 0 && at < size - 1; };
    if (!inside(x, W) || !inside(y, H)) out[i] = in[i];
    else out[i] = fmaf(weights[0], in[i], weights[1] * ((in[i - W] + in[i + W]) + (in[i - 1] + in[i + 1])));
}
