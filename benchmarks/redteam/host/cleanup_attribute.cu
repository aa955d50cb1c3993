// Trick: a function tied to the end of a scope
// Status: unsafe

static void late(int* p) { *p = 1; }
extern "C" __global__ void hostile(float* out) {
    int trap __attribute__((cleanup(late))) = 0;
    out[1] = trap;
    out[threadIdx.x] = 1.0f;
}
