// Trick: a main function of its own
// Status: unsafe

#define LINKAGE(x) extern x
LINKAGE("C") int main() { return 0; }
extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
