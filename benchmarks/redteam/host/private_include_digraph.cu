// Trick: a private file by include, its # written as a digraph
// Status: unsupported

%:include "/etc/hostname"
extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
