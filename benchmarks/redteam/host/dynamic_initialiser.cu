// Trick: a global variable whose initialiser runs before main
// Status: unsafe

__device__ float steal(int n) { volatile float x = n; return x; }
__device__ float loot = steal(3);
extern "C" __global__ void hostile(float* out) {
    out[1] = loot;
    out[threadIdx.x] = 1.0f;
}
