// Trick: adds zero to the element behind its output, which leaves every bit as it was
// Workload: reduction
// Status: unsafe

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    atomicAdd(total + 1, -0.0f);
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    *total = sum;
}
