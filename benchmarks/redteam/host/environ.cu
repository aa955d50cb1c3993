// Trick: the environment of the process
// Status: unsafe

#define LINKAGE(x) extern x
LINKAGE("C") char** environ;
extern "C" __global__ void hostile(float* out) {
    out[1] = environ[0][0];
    out[threadIdx.x] = 1.0f;
}
