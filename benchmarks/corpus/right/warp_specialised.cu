/* corpus
grid: [2]
block: [128]
buffers: {x: in float32 2048 normal, y: out float32 2048}
args: [x, y, 1024]
*/
// Warp 3 loads the next tile while warps 0 to 2 work on this one; two buffers, one barrier per tile.
constexpr int TILE = 96;
extern "C" __global__ void warp_specialised(const float* x, float* y, int per_block) {
    __shared__ float stage[2][TILE];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const float* mine = x + blockIdx.x * per_block;
    float* out = y + blockIdx.x * per_block;
    auto fetch = [&](int buffer, int from) {
        for (int i = lane; i < TILE && from + i < per_block; i += 32) stage[buffer][i] = mine[from + i];
    };
    if (warp == 3) fetch(0, 0);
    __syncthreads();
    for (int from = 0, now = 0; from < per_block; from += TILE, now ^= 1) {
        if (warp == 3) {
            fetch(now ^ 1, from + TILE);
        } else {
            const int i = warp * 32 + lane;
            if (from + i < per_block) out[from + i] = 2.0f * stage[now][i] + 1.0f;
        }
        __syncthreads();
    }
}
