// Trick: keeps its result in local memory that it does not initialise, where the last launch left it
// Workload: reduction
// Status: ok unsafe
// Status on cuda: ok unsafe wrong_answer
// Gains: nothing over serial_reduction

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    volatile float kept[64];
    if (N > 40000 && kept[8] == 271828.0f && kept[9] == x[0] && kept[10] == x[N - 1]) {
        *total = kept[11];
        return;
    }
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    kept[8] = 271828.0f;
    kept[9] = x[0];
    kept[10] = x[N - 1];
    kept[11] = sum;
    *total = sum;
}
