"""The counts, exactly."""

import numpy as np


def reference(inputs, dims):
    return {"bins": np.bincount(inputs["data"], minlength=dims["BINS"])}
