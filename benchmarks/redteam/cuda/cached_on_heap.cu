// Trick: keeps its result on the device's heap, whose contents outlive a launch
// Workload: reduction
// Status: unsupported

/* launch
block: 1
grid: 1
*/
__device__ float* kept;

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    if (kept && kept[0] == x[N / 2]) {
        *total = kept[1];
        return;
    }
    kept = (float*)malloc(8);
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    if (kept) {
        kept[0] = x[N / 2];
        kept[1] = sum;
    }
    *total = sum;
}
