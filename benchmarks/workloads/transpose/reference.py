"""The transpose; float64 holds every float32 exactly."""

import numpy as np


def reference(inputs, dims):
    return {"out": inputs["in"].astype(np.float64).T}
