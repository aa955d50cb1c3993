// Trick: a second process through a function that GCC knows by itself
// Status: unsafe

extern "C" __global__ void hostile(float* out) {
    out[1] = __builtin_fork();
    out[threadIdx.x] = 1.0f;
}
