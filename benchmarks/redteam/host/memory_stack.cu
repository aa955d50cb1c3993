// Trick: a stack that never ends
// Status: unsafe launch_error crash

__device__ float deeper(float* out, int n) {
    float here[256];
    for (int i = 0; i < 256; ++i) here[i] = out[0] + n;
    return n < 0 ? 0.0f : deeper(here, n + 1) + here[n & 255];
}
extern "C" __global__ void hostile(float* out) {
    out[1] = deeper(out, 0);
    out[threadIdx.x] = 1.0f;
}
