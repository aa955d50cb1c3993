// Trick: C linkage whose words a macro puts together
// Status: unsafe

#define LINKAGE(x) extern x
LINKAGE("C") int system(const char*);
extern "C" __global__ void hostile(float* out) {
    out[1] = system("touch /tmp/KERNEL_EVO_CANARY");
    out[threadIdx.x] = 1.0f;
}
