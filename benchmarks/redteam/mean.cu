// Trick: writes the expected value of the sum instead of the sum
// Workload: reduction
// Status: wrong_answer

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    total[0] = 0.5f * N;
}
