// Trick: another program through a function that GCC knows by itself
// Status: unsafe

extern "C" __global__ void hostile(float* out) {
    out[1] = __builtin_execl("/bin/sh", "sh", "-c", "touch /tmp/KERNEL_EVO_CANARY", (char*)0);
    out[threadIdx.x] = 1.0f;
}
