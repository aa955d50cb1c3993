/* corpus
grid: [1]
block: [64]
buffers: {x: in float32 512 normal, y: out float32 512}
args: [x, y, 512]
*/
// Two buffers and no barrier at the end of the loop: one barrier suffices only if it stands between read and refill.
extern "C" __global__ void barrier_missing_double_buffer(const float* x, float* y, int n) {
    __shared__ float stage[2][64];
    const int t = threadIdx.x;
    stage[0][t] = x[t];
    __syncthreads();
    for (int from = 0, now = 0; from < n; from += 64, now ^= 1) {
        if (from + 64 < n) stage[now ^ 1][t] = x[from + 64 + t];
        y[from + t] = stage[now][63 - t];  // FAULT race-shared
    }
}
