// Trick: a destructor that runs when the thread ends
// Status: unsafe compile_error unsupported

struct Late { float* p; ~Late() { *p = 2.0f; } };
extern "C" __global__ void hostile(float* out) {
    static thread_local Late late{out};
    out[threadIdx.x] = 1.0f;
}
