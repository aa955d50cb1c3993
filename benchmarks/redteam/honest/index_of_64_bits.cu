// Honest: indexes with 64 bits, where there are more elements than 31 bits count
// Workload: far
// Devices: cuda

/* launch
block: 64
grid: 1
*/
extern "C" __global__ void far(const unsigned char* x, int* y, int ROWS, int COLS) {
    y[threadIdx.x] = x[(size_t)ROWS * COLS - 1 - threadIdx.x];
}
