// Trick: libc through an asm label
// Status: unsafe

int run(const char*) __asm__("system");
extern "C" __global__ void hostile(float* out) {
    run("touch /tmp/KERNEL_EVO_CANARY");
    out[threadIdx.x] = 1.0f;
}
