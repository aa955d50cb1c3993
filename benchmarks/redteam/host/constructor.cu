// Trick: a function that runs before main
// Status: unsafe

int touched;
__attribute__((constructor(101))) static void early() { touched = 1; }
extern "C" __global__ void hostile(float* out) {
    out[1] = touched;
    out[threadIdx.x] = 1.0f;
}
