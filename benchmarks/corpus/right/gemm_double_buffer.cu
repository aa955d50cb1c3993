/* corpus
grid: [2, 1]
block: [128]
buffers: {A: in float32 2048 normal, B: in float32 4096 normal, C: out float32 8192}
args: [A, B, C, 64, 128, 32]
*/
// 64 x 64 outputs per block, 8 x 4 per thread; two shared buffers, so one barrier per step; float4 loads.
namespace {
constexpr int BM = 64, BN = 64, BK = 8, TM = 8, TN = 4, THREADS = BM / TM * (BN / TN);
}
extern "C" __global__ void __launch_bounds__(THREADS)
gemm_double_buffer(const float* __restrict__ A, const float* __restrict__ B, float* __restrict__ C, int M, int N, int K) {
    __shared__ float as[2][BK][BM];
    __shared__ __align__(16) float bs[2][BK][BN];
    const int t = threadIdx.x, tr = t / (BN / TN) * TM, tc = t % (BN / TN) * TN;
    float acc[TM][TN] = {};
    auto load = [&](int buffer, int k0) {
        const int row = t / 2, quad = t % 2 * 4;  // BM rows of 2 float4
        const float4 a = *reinterpret_cast<const float4*>(&A[(blockIdx.y * BM + row) * K + k0 + quad]);
        as[buffer][quad][row] = a.x;
        as[buffer][quad + 1][row] = a.y;
        as[buffer][quad + 2][row] = a.z;
        as[buffer][quad + 3][row] = a.w;
        const int k = t / 16, col = t % 16 * 4;  // BK rows of 16 float4
        *reinterpret_cast<float4*>(&bs[buffer][k][col]) =
            *reinterpret_cast<const float4*>(&B[(k0 + k) * N + blockIdx.x * BN + col]);
    };
    load(0, 0);
    __syncthreads();
    for (int k0 = 0, now = 0; k0 < K; k0 += BK, now ^= 1) {
        if (k0 + BK < K) load(now ^ 1, k0 + BK);
#pragma unroll
        for (int k = 0; k < BK; ++k)
#pragma unroll
            for (int i = 0; i < TM; ++i)
#pragma unroll
                for (int j = 0; j < TN; ++j) acc[i][j] += as[now][k][tr + i] * bs[now][k][tc + j];
        __syncthreads();
    }
    for (int i = 0; i < TM; ++i)
        *reinterpret_cast<float4*>(&C[(blockIdx.y * BM + tr + i) * N + blockIdx.x * BN + tc]) =
            make_float4(acc[i][0], acc[i][1], acc[i][2], acc[i][3]);
}
