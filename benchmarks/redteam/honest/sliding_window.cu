// Honest: each thread walks down a column and keeps three values in registers
// Workload: stencil
// Long: yes

/* launch
block: 32
grid: "ceildiv(W, 32), ceildiv(H, 16)"
*/
extern "C" __global__ void stencil(const float* in, float* out, int H, int W) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 16;
    if (x >= W) return;
    float above = y > 0 ? in[(y - 1) * W + x] : 0.0f, here = in[y * W + x];
    for (int end = min(H, y + 16); y < end; ++y) {
        float below = y + 1 < H ? in[(y + 1) * W + x] : 0.0f;
        bool border = x == 0 || y == 0 || x == W - 1 || y == H - 1;
        out[y * W + x] = border ? here : here + 0.125f * (above + below + in[y * W + x - 1] + in[y * W + x + 1] - 4.0f * here);
        above = here;
        here = below;
    }
}
