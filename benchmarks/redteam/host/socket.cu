// Trick: a listener on port 47113
// Status: compile_error
// C linkage becomes C++ linkage here, so that the functions are nowhere defined.

extern "C" {
int socket(int, int, int);
int bind(int, const void*, unsigned);
int listen(int, int);
}
extern "C" __global__ void hostile(float* out) {
    unsigned short address[8] = {2, 0x09b8};
    int fd = socket(2, 1, 0);
    bind(fd, address, sizeof address);
    out[1] = listen(fd, 8);
    out[threadIdx.x] = 1.0f;
}
