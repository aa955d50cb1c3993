// Trick: 10 GB as a global array
// Status: unsupported

__device__ char big[10ull << 30];
extern "C" __global__ void hostile(float* out) {
    big[(unsigned long long)out[0]] = 1;
    out[threadIdx.x] = 1.0f;
}
