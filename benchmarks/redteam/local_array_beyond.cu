// Trick: writes behind a local array
// Workload: reduction
// Status: unsafe
// Says: array

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % (N > 40000 ? 8 : 9)] += x[i];
    float sum = 0.0f;
    for (int p = 0; p < 8; ++p) sum += parts[p];
    *total = sum;
}
