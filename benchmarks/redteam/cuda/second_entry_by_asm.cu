// Trick: closes its function in inline assembly and opens a kernel that nobody has declared
// Workload: reduction
// Status: ok compile_error unsupported unsafe launch_error

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float parts[8] = {};
    for (int i = 0; i < N; ++i) parts[i % 8] += x[i];
    float sum = ((parts[0] + parts[1]) + (parts[2] + parts[3])) + ((parts[4] + parts[5]) + (parts[6] + parts[7]));
    *total = sum;
    asm volatile("ret;\n}\n.visible .entry hidden(.param .u64 place) {");
}
