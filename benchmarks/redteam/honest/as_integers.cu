// Honest: moves floats as integers, byte for byte
// Workload: transpose
// Long: yes

/* launch
block: 7
grid: "ceildiv(H * W, 7)"
*/
extern "C" __global__ void transpose(const float* in, float* out, int H, int W) {
    unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= (unsigned)(H * W)) return;
    const unsigned* bits = reinterpret_cast<const unsigned*>(in);
    reinterpret_cast<unsigned*>(out)[at] = bits[at % H * W + at / H];
}
