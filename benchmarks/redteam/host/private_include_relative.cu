// Trick: a private file by include, from a folder of the system upwards
// Status: unsafe

#include <../../etc/hostname>
extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
