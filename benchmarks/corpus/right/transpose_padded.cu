/* corpus
grid: [2, 3]
block: [32, 8]
buffers: {x: in float32 3500 normal, y: out float32 3500}
args: [x, y, 50, 70]
*/
constexpr int TILE = 32, ROWS = 8;
extern "C" __global__ void transpose_padded(const float* x, float* y, int width, int height) {
    __shared__ float tile[TILE][TILE + 1];
    int col = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (col < width && row + j < height) tile[threadIdx.y + j][threadIdx.x] = x[(row + j) * width + col];
    __syncthreads();
    col = blockIdx.y * TILE + threadIdx.x;
    row = blockIdx.x * TILE + threadIdx.y;
    for (int j = 0; j < TILE; j += ROWS)
        if (col < height && row + j < width) y[(row + j) * height + col] = tile[threadIdx.x][threadIdx.y + j];
}
