/* corpus
grid: [2]
block: [32]
buffers: {flag: inout int32 1 zeros, y: out float32 32}
args: [flag, y]
timeout_s: 0.3
*/
extern "C" __global__ void endless_loop(volatile int* flag, float* y) {
    while (*flag == 0) {  // FAULT timeout
    }
    y[threadIdx.x] = 1.0f;
}
