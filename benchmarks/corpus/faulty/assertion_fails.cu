/* corpus
grid: [2]
block: [32]
buffers: {x: in int32 64 ramp, y: out int32 64}
args: [x, y]
*/
#include <cassert>
extern "C" __global__ void assertion_fails(const int* x, int* y) {
    const int i = blockIdx.x * 32 + threadIdx.x;
    assert(x[i] < 50);  // FAULT trap
    y[i] = x[i];
}
