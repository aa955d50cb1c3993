// Trick: writes what it has read behind its output
// Workload: reduction
// Status: unsafe ok
// Gains: nothing over serial_reduction

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    volatile float* behind = total + 1;
    *behind = *behind;
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    *total = sum;
}
