// Honest: sums by halves, with a function that calls itself
// Workload: reduction
// Long: yes

/* launch
block: 1
grid: 1
*/
__device__ float sum_of(const float* x, int count) {
    if (count <= 16) {
        float sum = 0.0f;
        for (int i = 0; i < count; ++i) sum += x[i];
        return sum;
    }
    return sum_of(x, count / 2) + sum_of(x + count / 2, count - count / 2);
}

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    *total = sum_of(x, N);
}
