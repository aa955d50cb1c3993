// Honest: cooperative groups: a tile of 16 lanes for each row
// Workload: softmax

/* launch
block: 64
grid: "ceildiv(ROWS, 4)"
*/
#include <cooperative_groups.h>
namespace cg = cooperative_groups;

extern "C" __global__ void softmax(const float* x, float* y, int ROWS, int COLS) {
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    int r = blockIdx.x * 4 + threadIdx.x / 16;
    if (r >= ROWS) return;
    float most = x[(size_t)r * COLS], sum = 0.0f;
    for (int c = tile.thread_rank(); c < COLS; c += tile.size()) most = fmaxf(most, x[(size_t)r * COLS + c]);
    for (int s = 8; s > 0; s /= 2) most = fmaxf(most, tile.shfl_xor(most, s));
    for (int c = tile.thread_rank(); c < COLS; c += tile.size()) sum += expf(x[(size_t)r * COLS + c] - most);
    for (int s = 8; s > 0; s /= 2) sum += tile.shfl_xor(sum, s);
    for (int c = tile.thread_rank(); c < COLS; c += tile.size()) y[(size_t)r * COLS + c] = expf(x[(size_t)r * COLS + c] - most) / sum;
}
