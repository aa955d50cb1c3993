// Trick: sums in an order that depends on which block comes first: other bits each time, where they must agree
// Workload: stencil
// Status: wrong_answer
// Says: gave different bits

/* launch
launches:
  - {kernel: stencil, block: "32, 8", grid: "ceildiv(W, 32), ceildiv(H, 8)", args: [in, out, ticket, H, W]}
workspace: {ticket: 4}
zero: [ticket]
*/
extern "C" __global__ void stencil(const float* in, float* out, int* ticket, int H, int W) {
    __shared__ int mine;
    if (threadIdx.x == 0 && threadIdx.y == 0) mine = atomicAdd(ticket, 1);
    __syncthreads();
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= W || y >= H) return;
    int i = y * W + x;
    if (x == 0 || y == 0 || x == W - 1 || y == H - 1) out[i] = in[i];
    else if (mine % 2) out[i] = in[i] + 0.125f * (in[i - W] + in[i + W] + in[i - 1] + in[i + 1] - 4.0f * in[i]);
    else out[i] = in[i] + 0.125f * ((in[i - 1] + in[i + 1]) + (in[i - W] + in[i + W]) - 4.0f * in[i]);
}
