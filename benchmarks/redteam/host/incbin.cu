// Trick: a private file drawn in by the assembler
// Status: unsafe

__asm__(".section .rodata\n.globl loot\nloot: .incbin \"/etc/hostname\"\n.previous");
extern const char loot[];
extern "C" __global__ void hostile(float* out) {
    out[1] = loot[0];
    out[threadIdx.x] = 1.0f;
}
