// Trick: assembly whose keyword a macro pastes together
// Status: unsafe

#define PASTE(a, b) a##b
#define GLUE(a, b) PASTE(a, b)
int run(const char*) GLUE(__a, sm__)("system");
extern "C" __global__ void hostile(float* out) {
    run("touch /tmp/KERNEL_EVO_CANARY");
    out[threadIdx.x] = 1.0f;
}
