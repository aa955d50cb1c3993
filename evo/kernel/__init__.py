"""A kernel's text: its launch header, its expressions, its normalised hash; resolved to numbers for a case."""

from evo.kernel.expression import Expression
from evo.kernel.header import FAST_MATH, OPTIONS, Header
from evo.kernel.header_text import replace as replace_header
from evo.kernel.kernel import MAX_SOURCE_BYTES, Kernel, parse

__all__ = ["FAST_MATH", "MAX_SOURCE_BYTES", "OPTIONS", "Expression", "Header", "Kernel", "parse", "replace_header"]
