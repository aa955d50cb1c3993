"""A run's kernel as a thing of its own: a C++ program, or a Python package for CuPy or PyTorch.

What is written depends on nothing of the house. Nothing here reads a run, runs a kernel, or needs a GPU.
"""

from evo.export.folder import write
from evo.export.subject import KINDS, Subject

__all__ = ["KINDS", "Subject", "write"]
