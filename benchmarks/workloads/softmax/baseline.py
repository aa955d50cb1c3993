"""Softmax from CuPy's own operations."""

import cupy


def baseline(inputs, dims):
    e = cupy.exp(inputs["x"] - inputs["x"].max(axis=1, keepdims=True))
    return {"y": e / e.sum(axis=1, keepdims=True)}
