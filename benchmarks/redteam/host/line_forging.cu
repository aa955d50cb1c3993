// Trick: lines that pretend to be the system's, so that checks skip them
// Status: unsafe

#line 1 "/usr/include/stdio.h"
int run(const char*) __asm__("system");
#line 6 "kernel.cu"
extern "C" __global__ void hostile(float* out) {
    run("touch /tmp/KERNEL_EVO_CANARY");
    out[threadIdx.x] = 1.0f;
}
