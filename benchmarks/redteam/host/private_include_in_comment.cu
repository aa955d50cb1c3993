// Trick: a private file by include, behind a comment that one compiler continues and another ends
// Status: unsafe
// The next line ends in a backslash and a blank. \ 
#include "/etc/hostname"

extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
