// Trick: a second process through the C library
// Status: compile_error
// C linkage becomes C++ linkage here, so that the function is nowhere defined.

extern "C" int fork();
extern "C" __global__ void hostile(float* out) {
    out[1] = fork();
    out[threadIdx.x] = 1.0f;
}
