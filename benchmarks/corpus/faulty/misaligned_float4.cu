/* corpus
grid: [1]
block: [32]
buffers: {x: in float32 64 normal, y: out float32 32}
args: [x, y]
*/
extern "C" __global__ void misaligned_float4(const float* x, float* y) {
    const float4 v = *reinterpret_cast<const float4*>(x + threadIdx.x);  // FAULT misaligned
    y[threadIdx.x] = v.x + v.y + v.z + v.w;
}
