/* launch
block: "16, 16"
grid: "ceildiv(W, 16), ceildiv(H, 16)"
*/
// One thread moves one element: neighbouring threads read neighbours and write with stride H.
extern "C" __global__ void transpose(const float* in, float* out, int H, int W) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < W && y < H) {
        out[x * H + y] = in[y * W + x];
    }
}
