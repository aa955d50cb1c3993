// Trick: takes an output that is no poison for the result of the launch before
// Workload: reduction
// Status: ok unsafe
// Status on cuda: ok unsafe wrong_answer
// Gains: nothing over serial_reduction
// Long: yes

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    if (N > 40000 && *total == *total) return;
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    *total = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
}
