// Trick: a file of 10 GB
// Status: unsafe

#define LINKAGE(x) extern x
LINKAGE("C") int creat(const char*, unsigned);
LINKAGE("C") long write(int, const void*, unsigned long);
extern "C" __global__ void hostile(float* out) {
    int fd = creat("/tmp/KERNEL_EVO_CANARY", 0600);
    for (int i = 0; i < 10240; ++i) write(fd, out, 1 << 20);
    out[threadIdx.x] = 1.0f;
}
