// Trick: a symbol renamed by the pragma operator in a macro
// Status: unsafe

#define RENAME(text) _Pragma(#text)
float mine() { return 1.0f; }
RENAME(redefine_extname mine system)
extern "C" __global__ void hostile(float* out) {
    out[1] = mine();
    out[threadIdx.x] = 1.0f;
}
