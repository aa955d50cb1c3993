// Trick: a private file by include, its name in a macro
// Status: unsafe

#define WHERE "/etc/hostname"
#include WHERE
extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
