// What the harness itself runs on the GPU: the blocker behind which a sample is queued, checks, scrubbing, clocks.
// Compiled by NVRTC like any candidate. Times are nanoseconds, sizes bytes.

typedef unsigned int u32;
typedef unsigned long long u64;

__device__ u64 now_ns() {
    u64 now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    return now;
}

// Hold the stream until the host sets flag[0], at most limit_ns; flag[1] says that it was too long.
extern "C" __global__ void block_stream(volatile u32* flag, u64 limit_ns) {
    const u64 begin = now_ns();
    while (flag[0] == 0) {
        if (now_ns() - begin > limit_ns) {
            flag[1] = 1;
            __threadfence_system();
            return;
        }
    }
}

extern "C" __global__ void nothing() {}

__device__ u64 thread() { return blockIdx.x * (u64)blockDim.x + threadIdx.x; }
__device__ u64 threads() { return gridDim.x * (u64)blockDim.x; }

// Both addresses and the size are multiples of 16. A module's memory: the driver's own copies stop at each variable.
extern "C" __global__ void copy(uint4* to, const uint4* from, u64 nbytes) {
    for (u64 i = thread(); i < nbytes / 16; i += threads()) to[i] = from[i];
}

// first[0] = least index at which a and b differ; left as it is where they do not.
extern "C" __global__ void first_difference(const unsigned char* a, const unsigned char* b, u64 nbytes, u64* first) {
    const bool wide = ((u64)a & 15) == 0 && ((u64)b & 15) == 0;
    const u64 words = wide ? nbytes / 16 : 0;
    for (u64 i = thread(); i < words; i += threads()) {
        const uint4 x = ((const uint4*)a)[i], y = ((const uint4*)b)[i];
        if (x.x != y.x || x.y != y.y || x.z != y.z || x.w != y.w) {
            u64 at = 16 * i;
            while (a[at] == b[at]) at++;
            atomicMin(first, at);
        }
    }
    for (u64 i = 16 * words + thread(); i < nbytes; i += threads())
        if (a[i] != b[i]) atomicMin(first, i);
}

// A weight that nobody can tell who does not know the key (splitmix64, Steele et al., OOPSLA 2014).
__device__ u64 weight(u64 key, u64 i) {
    u64 z = key + (i + 1) * 0x9e3779b97f4a7c15ull;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

// sums[0], sums[1] += the words of memory, each times a weight of its own (multilinear hashing, Carter and Wegman 1979).
extern "C" __global__ void digest(const unsigned char* memory, u64 nbytes, u64 key, u64* sums) {
    const bool wide = ((u64)memory & 3) == 0;
    const u64 words = wide ? nbytes / 4 : 0;
    u64 one = 0, other = 0;
    for (u64 i = thread(); i < words; i += threads()) {
        const u64 word = ((const u32*)memory)[i];
        one += weight(key, 2 * i) * (word + 1);
        other += weight(key, 2 * i + 1) * (word + 1);
    }
    for (u64 i = 4 * words + thread(); i < nbytes; i += threads()) {
        one += weight(~key, 2 * i) * (memory[i] + 1ull);
        other += weight(~key, 2 * i + 1) * (memory[i] + 1ull);
    }
    for (int delta = 16; delta > 0; delta /= 2) {
        one += __shfl_down_sync(0xffffffffu, one, delta);
        other += __shfl_down_sync(0xffffffffu, other, delta);
    }
    if (threadIdx.x % 32 == 0) {
        atomicAdd(sums, one);
        atomicAdd(sums + 1, other);
    }
}

// first[0] = least, last[0] = greatest index in [begin, end) at which memory no longer repeats the 16-bit word.
extern "C" __global__ void spoilt(const unsigned char* memory, u64 begin, u64 end, u32 word, u64* first, u64* last) {
    for (u64 i = begin + thread(); i < end; i += threads()) {
        const unsigned char expected = i % 2 ? word >> 8 : word;
        if (memory[i] != expected) {
            atomicMin(first, i);
            atomicMax(last, i);
        }
    }
}

// One block per multiprocessor, with all the shared memory that a block can have.
extern "C" __global__ void scrub_shared(u32 words, u32 pattern) {
    extern __shared__ u32 memory[];
    for (u32 i = threadIdx.x; i < words; i += blockDim.x) ((volatile u32*)memory)[i] = pattern;
}

// As many threads as the device holds at once, each with some local memory.
template <u32 WORDS> __device__ void scrub_words(u32 pattern, u32* sink) {
    volatile u32 memory[WORDS];
    for (u32 i = 0; i < WORDS; i++) memory[i] = pattern;
    if (memory[pattern % WORDS] != pattern) *sink = 1;
}

extern "C" __global__ void scrub_local_1k(u32 pattern, u32* sink) { scrub_words<256>(pattern, sink); }
extern "C" __global__ void scrub_local_16k(u32 pattern, u32* sink) { scrub_words<4096>(pattern, sink); }

// Keep every multiprocessor busy for a while; clock[0] = cycles, clock[1] = nanoseconds of the first block.
extern "C" __global__ void spin(u64 for_ns, u64* clock, float* sink) {
    const u64 begin = now_ns();
    const long long cycle = clock64();
    float a = threadIdx.x * 1e-3f, b = 1.0f;
    u64 now = begin;
    while (now - begin < for_ns) {
        for (int i = 0; i < 512; i++) {
            a = fmaf(a, 0.999f, b);
            b = fmaf(b, 0.998f, a);
        }
        now = now_ns();
    }
    if (a == 12345.0f) *sink = a + b;
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        clock[0] = clock64() - cycle;
        clock[1] = now - begin;
    }
}
