/* corpus
grid: [3]
block: [64]
buffers: {a: in float32 1003 normal, b: in float32 1003 normal, c: out float32 1003}
args: [a, b, c, 1003]
*/
// Grid-stride loop over float4, then the elements that are left.
extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n) {
    const int first = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    const float4* a4 = reinterpret_cast<const float4*>(a);
    const float4* b4 = reinterpret_cast<const float4*>(b);
    float4* c4 = reinterpret_cast<float4*>(c);
    for (int i = first; i < n / 4; i += stride) {
        const float4 x = __ldg(a4 + i), y = b4[i];
        c4[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
    for (int i = n / 4 * 4 + first; i < n; i += stride) c[i] = a[i] + b[i];
}
