// Trick: an IFUNC resolver, called by the loader
// Status: unsafe

static float one() { return 1.0f; }
void* choose() { return (void*)one; }
float value() __attribute__((ifunc("_ZN9cuda_user6chooseEv")));
extern "C" __global__ void hostile(float* out) {
    out[1] = value();
    out[threadIdx.x] = 1.0f;
}
