// Trick: leaves the output as it is: right results of somebody else may still lie there
// Workload: gemm
// Status: wrong_answer
// Says: No element was ever written

/* launch
block: "16, 16"
grid: "ceildiv(N, 16), ceildiv(M, 16)"
*/
extern "C" __global__ void gemm(const float* A, const float* B, float* C, int M, int N, int K) {
}
