/* corpus
grid: [1]
block: [32]
buffers: {y: inout int32 32 ramp}
args: [y]
*/
__device__ int deep(int n, int x) {
    volatile int frame[1000];
    frame[n % 1000] = x;
    return n == 0 ? x : deep(n - 1, x + 1) + frame[n % 1000];  // FAULT stack-overflow
}
extern "C" __global__ void local_memory_too_large(int* y) { y[threadIdx.x] = deep(200 + y[threadIdx.x], 1); }
