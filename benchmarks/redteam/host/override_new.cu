// Trick: operator new replaced, from behind the namespace
// Status: compile_error

}
void* operator new(unsigned long) { return nullptr; }
namespace cuda_user {
extern "C" __global__ void hostile(float* out) {
    out[threadIdx.x] = 1.0f;
}
