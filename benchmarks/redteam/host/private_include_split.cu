// Trick: a private file by include, the directive cut by a line splice and comments
// Status: unsafe

# /* not */ inc\
lude /* a word */ "/etc/hostname"
extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
