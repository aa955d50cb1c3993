/* corpus
grid: [1]
block: [64]
buffers: {x: in uint8 64 integers 0 256, y: out uint8 64}
args: [x, y]
*/
extern "C" __global__ void bytes_race(const unsigned char* x, unsigned char* y) {
    __shared__ unsigned char s[64];
    s[threadIdx.x] = x[threadIdx.x];
    y[threadIdx.x] = s[threadIdx.x ^ 1];  // FAULT race-shared
}
