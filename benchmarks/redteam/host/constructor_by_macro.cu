// Trick: a function that runs before main, its attribute hidden in macros
// Status: unsafe

int touched;
#define WORD(a, b) a##b
#define PLACE __attribute__((WORD(con, structor)))
PLACE static void early() { touched = 1; }
extern "C" __global__ void hostile(float* out) {
    out[1] = touched;
    out[threadIdx.x] = 1.0f;
}
