// Trick: a life without its parent, by a system call smuggled in as a constant
// Status: ok
// Machine: x86_64
// The call fails with ENOSYS, and the kernel goes on. x86-64 only.

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
    out[threadIdx.x] = 1.0f;
    if (threadIdx.x == 0) {
        unsigned long long place;
        carry<157>(&place);
        out[0] = system_call<157>()(1, 0, 0, 0, 0, 0) < 0 ? 1.0f : 2.0f;
    }
}
