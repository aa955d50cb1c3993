"""The CUDA device's rooms: driver, memory, programs, timing, facts, and the lock of a GPU."""
