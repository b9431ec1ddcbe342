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
def _controller() -> Any:
    return ThreadpoolController()  # looks through all libraries that are loaded, which takes a while


def threads_for(size: int) -> AbstractContextManager[Any]:
    """As many threads as products with a covariance of this size are worth."""
    if size >= _WORTH_SHARING:
        return nullcontext()
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited
