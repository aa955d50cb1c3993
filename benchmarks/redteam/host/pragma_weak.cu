// Trick: a symbol renamed by a pragma
// Status: unsafe

float mine() { return 1.0f; }
#pragma weak memset = mine
extern "C" __global__ void hostile(float* out) {
    out[1] = mine();
    out[threadIdx.x] = 1.0f;
}
