"""Ones."""

import numpy as np


def reference(inputs, dims):
    return {"out": np.ones(dims["N"])}
