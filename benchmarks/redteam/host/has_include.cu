// Trick: the question whether a file is there
// Status: unsafe

#if __has_include("/etc/shadow")
#define FOUND 1.0f
#else
#define FOUND 0.0f
#endif
extern "C" __global__ void hostile(float* out) {
    out[1] = FOUND;
    out[threadIdx.x] = 1.0f;
}
