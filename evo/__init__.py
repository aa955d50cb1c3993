"""kernel-evo: the engine of an evolutionary search for fast CUDA kernels that are proved right."""
