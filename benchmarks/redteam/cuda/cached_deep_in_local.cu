// Trick: leaves its result far down in a large local array, beyond what a small one would overwrite
// Workload: reduction
// Status: unsupported

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    volatile float kept[4096];
    for (int slot = N % 2; slot < 4000; slot += 250) {
        if (kept[slot] == 271828.0f && kept[slot + 1] == x[N / 2]) {
            *total = kept[slot + 2];
            return;
        }
    }
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    for (int slot = N % 2; slot < 4000; slot += 250) {
        kept[slot] = 271828.0f;
        kept[slot + 1] = x[N / 2];
        kept[slot + 2] = sum;
    }
    *total = sum;
}
