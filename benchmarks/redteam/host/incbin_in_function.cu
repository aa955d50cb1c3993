// Trick: a private file drawn in by the assembler, by a statement whose keyword is pasted
// Status: unsafe

#define PASTE(a, b) a##b
extern "C" __global__ void hostile(float* out) {
    PASTE(as, m) volatile(".pushsection .rodata\n.incbin \"/etc/hostname\"\n.popsection");
    out[threadIdx.x] = 1.0f;
}
