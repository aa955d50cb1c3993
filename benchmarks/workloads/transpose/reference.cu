/* launch
block: "32, 8"
grid: "ceildiv(W, 32), ceildiv(H, 32)"
*/
// A block turns a 32 x 32 tile in shared memory, four rows a thread, so that loads and stores both run along rows.
extern "C" __global__ void transpose(const float* in, float* out, int H, int W) {
    __shared__ float tile[32][33];  // the 33rd column keeps a column's elements in 32 different banks
    int x = blockIdx.x * 32 + threadIdx.x;
    int y = blockIdx.y * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) {
        if (x < W && y + row < H) {
            tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * W + x];
        }
    }
    __syncthreads();
    x = blockIdx.y * 32 + threadIdx.x;
    y = blockIdx.x * 32 + threadIdx.y;
    for (int row = 0; row < 32; row += 8) {
        if (x < H && y + row < W) {
            out[(y + row) * H + x] = tile[threadIdx.x][threadIdx.y + row];
        }
    }
}
