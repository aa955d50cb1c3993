/* corpus
grid: [2]
block: [64]
buffers: {x: inout uint8 128 integers 0 256}
args: [x]
*/
// Neighbouring threads share words: each byte is its thread's own, and no barrier is needed until the reversal.
extern "C" __global__ void bytes_in_place(unsigned char* x) {
    __shared__ unsigned char s[64];
    const int t = threadIdx.x;
    s[t] = x[blockIdx.x * 64 + t];
    s[t] = (unsigned char)(s[t] ^ 0x55);
    s[t] = (unsigned char)(s[t] + 1);
    __syncthreads();
    x[blockIdx.x * 64 + t] = s[63 - t];
}
