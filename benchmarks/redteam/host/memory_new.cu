// Trick: 10 GB of the heap
// Status: unsupported

extern "C" __global__ void hostile(float* out) {
    char* big = new char[10ull << 30];
    for (unsigned long long i = 0; i < 10ull << 30; i += 4096) big[i] = 1;
    out[threadIdx.x] = 1.0f;
}
