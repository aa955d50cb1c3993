// Trick: a pointer in .preinit_array, called before any constructor
// Status: unsafe

int touched;
static void early() { touched = 1; }
__attribute__((section(".preinit_array"), used)) static void (*entry)() = early;
extern "C" __global__ void hostile(float* out) {
    out[1] = touched;
    out[threadIdx.x] = 1.0f;
}
