"""CuPy's prefix sum."""

import cupy


def baseline(inputs, dims):
    return {"y": cupy.cumsum(inputs["x"])}
