/* corpus
grid: [5]
block: [96]
buffers: {x: in float32 1000 normal, y: out float32 1000, flags: out int32 5}
args: [x, y, flags, 200]
*/
// Mean and variance by shared atomics, block-wide votes on the result.
extern "C" __global__ void layer_norm_votes(const float* x, float* y, int* flags, int columns) {
    __shared__ float sum, squares;
    if (threadIdx.x == 0) sum = squares = 0.0f;
    __syncthreads();
    const float* row = x + blockIdx.x * columns;
    float a = 0.0f, b = 0.0f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        a += row[c];
        b += row[c] * row[c];
    }
    atomicAdd(&sum, a);
    atomicAdd(&squares, b);
    __syncthreads();
    const float mean = sum / columns, scale = rsqrtf(squares / columns - mean * mean + 1e-5f);
    bool large = false;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) {
        const float v = (row[c] - mean) * scale;
        y[blockIdx.x * columns + c] = v;
        large |= fabsf(v) > 2.0f;
    }
    const int any = __syncthreads_or(large), all = __syncthreads_and(scale > 0.0f), threads = __syncthreads_count(1);
    if (threadIdx.x == 0) flags[blockIdx.x] = (any != 0) + 2 * (all != 0) + 4 * threads;
}
