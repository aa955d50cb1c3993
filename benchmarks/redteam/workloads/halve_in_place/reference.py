"""Half of x and 1, in float64."""

import numpy as np


def reference(inputs, dims):
    x = inputs["x"].astype(np.float64)
    return {"x": (0.5 * x + 1.0, 0.5 * np.abs(x) + 1.0)}
