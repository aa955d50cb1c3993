// Honest: one thread: what the counting kernel is measured against
// Workload: scan

/* launch
block: 1
grid: 1
args: [x, y, N]
*/
extern "C" __global__ void scan_blocks(const float* x, float* y, int N) {
    float running = 0.0f;
    for (int i = 0; i < N; ++i) {
        running += x[i];
        y[i] = running;
    }
}
