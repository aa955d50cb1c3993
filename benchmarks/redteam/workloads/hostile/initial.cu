/* launch
block: 64
grid: 1
*/
extern "C" __global__ void hostile(float* out) { out[threadIdx.x] = 1.0f; }
