"""CUB's reduction, as CuPy calls it."""


def baseline(inputs, dims):
    return {"total": inputs["x"].sum(keepdims=True)}
