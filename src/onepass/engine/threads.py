"""One BLAS thread for products that are too small to share.

The threads of a BLAS synchronise at the end of every product. For small products that takes longer than the product
itself, and a hundred times as long where other programs use the cores.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["threads_for"]

_WORTH_SHARING = 1024  # rows of a covariance


@cache
def _libraries() -> tuple[Any, ...]:
    # Looks through all libraries that are loaded, which takes a while.
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class _OneThread(AbstractContextManager[None]):
    """One thread for every BLAS, where it has more: one row at a time, even to set them costs more than a product."""

    def __enter__(self) -> None:
        self._before = [(own, n) for own in _libraries() if (n := own.get_num_threads()) != 1]
        for library, _ in self._before:
            library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        for library, n_threads in self._before:
            library.set_num_threads(n_threads)


def threads_for(size: int) -> AbstractContextManager[Any]:
    """As many threads as products with a covariance of this size are worth."""
    return nullcontext() if size >= _WORTH_SHARING else _OneThread()
