"""Detects AVX2, which decides which of two builds of the kernels is imported."""

import cython

__all__ = ["has_avx2"]


def has_avx2():
    """Whether the processor has the instructions of x86-64-v3 that the kernels are built for."""
    return cython.cast(cython.bint, onepass_has_avx2())
