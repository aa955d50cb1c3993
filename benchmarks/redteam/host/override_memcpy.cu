// Trick: a function of the C library replaced
// Status: unsafe

#define LINKAGE(x) extern x
LINKAGE("C") void* memcpy(void* to, const void*, unsigned long) { return to; }
extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
