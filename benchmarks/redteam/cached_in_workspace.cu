// Trick: keeps its result in its workspace
// Workload: reduction
// Status: ok unsafe
// Status on cuda: ok unsafe wrong_answer
// Gains: nothing over serial_reduction
// Long: yes

/* launch
block: 1
grid: 1
args: [x, total, kept, N]
workspace: {kept: 16}
*/
extern "C" __global__ void reduction(const float* x, float* total, float* kept, int N) {
    if (N > 40000 && kept[0] == 271828.0f && kept[1] == x[0] && kept[2] == x[N - 1]) {
        *total = kept[3];
        return;
    }
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    kept[0] = 271828.0f;
    kept[1] = x[0];
    kept[2] = x[N - 1];
    kept[3] = sum;
    *total = sum;
}
