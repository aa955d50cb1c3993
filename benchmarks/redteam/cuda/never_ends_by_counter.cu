// Trick: never returns once a counter in a global says that it has been looked at
// Workload: reduction
// Status: ok timeout

/* launch
block: 1
grid: 1
*/
__device__ int launches;

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    while (atomicAdd(&launches, 1) >= 3) {}
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    *total = sum;
}
