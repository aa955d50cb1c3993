// Trick: a forged report through a function that GCC knows by itself
// Status: unsafe

extern "C" __global__ void hostile(float* out) {
    __builtin_printf("end\tdone\n");
    out[threadIdx.x] = 1.0f;
}
