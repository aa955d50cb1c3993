// Honest: reads %smid, %laneid and the clock, and lets them decide nothing that shows
// Workload: reduction
// Devices: cuda

/* launch
block: 32
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    unsigned sm, lane;
    asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    if (clock64() == 0 && sm > 100000u) return;
    float sum = 0.0f;
    for (int i = lane; i < N; i += 32) sum += x[i];
    for (int delta = 16; delta > 0; delta /= 2) sum += __shfl_down_sync(0xffffffffu, sum, delta);
    if (lane == 0) *total = sum;
}
