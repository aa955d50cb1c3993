// Trick: loads four values from an address that is no multiple of 16
// Workload: reduction
// Status: unsafe

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float4 four;
    asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(four.x), "=f"(four.y), "=f"(four.z), "=f"(four.w)
                 : "l"(x + 1));
    if (four.x + four.y + four.z + four.w == 1e30f) return;
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    *total = sum;
}
