// Trick: writes behind its shared memory
// Workload: reduction
// Status: unsafe launch_error

/* launch
block: 1
grid: 1
*/
__shared__ float memory[32];

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    volatile float* place = memory;
    place[60000 + N % 2] = 1.0f;
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    *total = sum + 0.0f * place[0];
}
