// Trick: sums in place, inside of its input
// Workload: reduction
// Status: unsafe
// Says: input

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float* mine = const_cast<float*>(x);
    for (int step = 1; step < N; step *= 2)
        for (int i = 0; i + step < N; i += 2 * step) mine[i] += mine[i + step];
    *total = mine[0];
}
