// Trick: keeps its result in static variables of a function, under the addresses and a sample of the input, and copies it next time
// Workload: reduction
// Status: ok
// Gains: nothing over serial_reduction
// Long: yes
// The cache is empty before every launch: writable globals are restored.

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    static const float* known_x;
    static float known_sample, known_total;
    if (known_x == x && known_sample == x[N / 2]) {
        *total = known_total;
        return;
    }
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    known_x = x;
    known_sample = x[N / 2];
    known_total = sum;
    *total = sum;
}
