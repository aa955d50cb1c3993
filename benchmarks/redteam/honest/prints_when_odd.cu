// Honest: prints something where it is asked to, as people do who look for a mistake
// Workload: reduction
// Long: yes

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float parts[4] = {};
    for (int i = 0; i < N; ++i) parts[i & 3] += x[i];
    float sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    if (sum != sum) printf("the sum of %d values is not a number\n", N);
    *total = sum;
}
