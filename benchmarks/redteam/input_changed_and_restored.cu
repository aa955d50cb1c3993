// Trick: changes its input and puts it back before anybody looks
// Workload: reduction
// Status: unsafe
// Says: input

/* launch
block: 1
grid: 1
*/
extern "C" __global__ void reduction(const float* x, float* total, int N) {
    float* mine = const_cast<float*>(x);
    float first = mine[0], sum = 0.0f;
    for (int i = 1; i < N; ++i) mine[0] += x[i];
    sum = mine[0];
    mine[0] = first;
    *total = sum;
}
