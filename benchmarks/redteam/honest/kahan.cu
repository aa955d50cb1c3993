// Honest: compensated summation, more exact than asked
// Workload: reduction

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float sum = 0.0f, lost = 0.0f;
    for (int i = 0; i < N; ++i) {
        float term = __fsub_rn(x[i], lost);
        float next = __fadd_rn(sum, term);
        lost = __fsub_rn(__fsub_rn(next, sum), term);
        sum = next;
    }
    *total = sum;
}
