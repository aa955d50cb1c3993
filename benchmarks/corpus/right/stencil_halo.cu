/* corpus
grid: [3, 4]
block: [16, 8]
buffers: {x: in float32 1200 normal, y: out float32 1200}
args: [x, y, 40, 30]
*/
// Five points, zero beyond the border; the tile has a halo of one.
extern "C" __global__ void stencil_halo(const float* x, float* y, int width, int height) {
    __shared__ float tile[8 + 2][16 + 2];
    const int col = blockIdx.x * 16 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    for (int r = threadIdx.y; r < 10; r += 8)
        for (int c = threadIdx.x; c < 18; c += 16) {
            const int gc = blockIdx.x * 16 + c - 1, gr = blockIdx.y * 8 + r - 1;
            tile[r][c] = gc >= 0 && gc < width && gr >= 0 && gr < height ? x[gr * width + gc] : 0.0f;
        }
    __syncthreads();
    if (col >= width || row >= height) return;
    const int c = threadIdx.x + 1, r = threadIdx.y + 1;
    y[row * width + col] = tile[r][c] - 0.25f * (tile[r - 1][c] + tile[r + 1][c] + tile[r][c - 1] + tile[r][c + 1]);
}
