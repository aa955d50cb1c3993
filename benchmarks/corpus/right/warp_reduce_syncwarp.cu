/* corpus
grid: [1]
block: [128]
buffers: {x: in float32 128 normal, out: out float32 4}
args: [x, out]
*/
extern "C" __global__ void warp_reduce_syncwarp(const float* x, float* out) {
    __shared__ float s[4][32];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    s[warp][lane] = x[threadIdx.x];
    __syncwarp();
    for (int half = 16; half > 0; half >>= 1) {
        const float other = lane < half ? s[warp][lane + half] : 0.0f;
        __syncwarp();
        if (lane < half) s[warp][lane] += other;
        __syncwarp();
    }
    if (lane == 0) out[warp] = s[warp][0];
}
