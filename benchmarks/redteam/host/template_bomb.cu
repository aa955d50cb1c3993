// Trick: a compile that never ends
// Status: compile_error timeout
// Long: yes
// It runs into the compiler's own limits.

template <int N, int M> struct Bomb {
    static constexpr int value = (Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value) & 1;
};
template <int M> struct Bomb<0, M> { static constexpr int value = M & 1; };

extern "C" __global__ void hostile(float* out) {
    out[1] = Bomb<28, 1>::value;
    out[threadIdx.x] = 1.0f;
}
