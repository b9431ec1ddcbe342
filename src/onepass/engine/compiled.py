"""How the engine compiles: with Numba, cached on disk, and with a plain word where that can't be."""

import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

__all__ = ["compiled", "compiled_now", "inlined"]

F = TypeVar("F", bound=Callable[..., Any])

# Sums may be reordered and fused, so that they vectorise; infinities and NaN keep their meaning, and a division by zero
# gives one instead of raising. No kernel touches Python's objects, so other threads may run meanwhile.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
    "error_model": "numpy",
    "nogil": True,
}
_warned = False
_functions: list[Any] = []


def compiled(function: F, **options: Any) -> F:
    """Compile a function on its first call, and keep the result on disk for the next process."""
    global _warned
    try:
        ready = njit(cache=True, **_OPTIONS, **options)(function)
    except RuntimeError as error:  # no folder for the cache can be written
        if not _warned:
            warnings.warn(f"compiled code can't be cached and is made anew in every process ({error})", stacklevel=2)
            _warned = True
        ready = njit(**_OPTIONS, **options)(function)
    _functions.append(ready)
    return cast(F, ready)


def compiled_now() -> bool:
    """Whether this process has compiled anything itself, instead of taking it from the disk.

    The two don't agree in every last bit: where several kernels bring a function that none has inlined, the process
    takes the copy of whichever came first.
    """
    return any(function.stats.cache_misses for function in _functions)


def inlined(function: F) -> F:
    """Compile a function into its callers: a call hands over every array in seven pieces, too much for a row's work."""
    return compiled(function, inline="always")
