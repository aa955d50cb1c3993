// Honest: finds the maximum of floats by an atomic on integers in an order-preserving code
// Workload: softmax
// Long: yes

/* launch
block: 128
grid: ROWS
*/
__device__ int coded(float v) {
    int bits = __float_as_int(v);
    return bits ^ (bits >> 31 & 0x7fffffff);
}
__device__ float decoded(int code) { return __int_as_float(code ^ (code >> 31 & 0x7fffffff)); }

extern "C" __global__ void softmax(const float* x, float* y, int ROWS, int COLS) {
    __shared__ int largest;
    __shared__ float total;
    const float* row = x + (size_t)blockIdx.x * COLS;
    int t = threadIdx.x;
    if (t == 0) {
        largest = coded(row[0]);
        total = 0.0f;
    }
    __syncthreads();
    for (int c = t; c < COLS; c += blockDim.x) atomicMax(&largest, coded(row[c]));
    __syncthreads();
    float most = decoded(largest), sum = 0.0f;
    for (int c = t; c < COLS; c += blockDim.x) sum += expf(row[c] - most);
    atomicAdd(&total, sum);
    __syncthreads();
    for (int c = t; c < COLS; c += blockDim.x) y[(size_t)blockIdx.x * COLS + c] = expf(row[c] - most) * (1.0f / total);
}
