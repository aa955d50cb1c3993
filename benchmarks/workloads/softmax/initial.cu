/* launch
block: 256
grid: ROWS
shared_bytes: "4 * 256"
*/
// One block per row: the row's maximum, then the sum of exponentials, each by a tree in shared memory.
extern "C" __global__ void softmax(const float* x, float* y, int ROWS, int COLS) {
    extern __shared__ float buffer[];
    const float* row = x + (size_t)blockIdx.x * COLS;
    float* out = y + (size_t)blockIdx.x * COLS;
    int t = threadIdx.x;

    float largest = -3.402823466e+38f;
    for (int c = t; c < COLS; c += blockDim.x) {
        largest = fmaxf(largest, row[c]);
    }
    buffer[t] = largest;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) {
            buffer[t] = fmaxf(buffer[t], buffer[t + s]);
        }
        __syncthreads();
    }
    largest = buffer[0];
    __syncthreads();

    float sum = 0.0f;
    for (int c = t; c < COLS; c += blockDim.x) {
        sum += expf(row[c] - largest);
    }
    buffer[t] = sum;
    __syncthreads();
    for (int s = blockDim.x / 2; s > 0; s /= 2) {
        if (t < s) {
            buffer[t] += buffer[t + s];
        }
        __syncthreads();
    }
    sum = buffer[0];

    for (int c = t; c < COLS; c += blockDim.x) {
        out[c] = expf(row[c] - largest) / sum;
    }
}
