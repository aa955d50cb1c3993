/* corpus
grid: [6]
block: [32]
buffers: {x: in float32 192 normal, best: inout float32 2 zeros}
args: [x, best, 192]
*/
// A lock around two words that change together; one thread per block takes it.
__device__ int lock = 0;
extern "C" __global__ void spin_lock(const float* x, float* best, int n) {
    float v = fabsf(x[blockIdx.x * 32 + threadIdx.x]);
    for (int d = 16; d > 0; d >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, d));
    if (threadIdx.x != 0) return;
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    __threadfence();
    if (v > best[0]) best[0] = v;
    best[1] += 1.0f;
    __threadfence();
    atomicExch(&lock, 0);
}
