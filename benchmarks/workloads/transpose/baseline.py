"""CuPy's copy into the transposed order."""

import cupy


def baseline(inputs, dims):
    return {"out": cupy.ascontiguousarray(inputs["in"].T)}
