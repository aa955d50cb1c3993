// Trick: writes its result into __constant__ memory through its address
// Workload: reduction
// Status: ok unsafe unsupported launch_error wrong_answer
// Gains: nothing over serial_reduction

/* launch
block: 1
grid: 1
*/
__constant__ float kept[4] = {1.0f, 2.0f, 3.0f, 4.0f};

extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float* memory = const_cast<float*>(kept);
    asm volatile("" : "+l"(memory));
    if (memory[0] == 271828.0f && memory[1] == x[N / 2]) {
        *total = memory[2];
        return;
    }
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    memory[1] = x[N / 2];
    memory[2] = sum;
    memory[0] = 271828.0f;
    *total = sum;
}
