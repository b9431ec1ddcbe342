"""One BLAS thread for products that are too small to share.

Threads of a BLAS meet at the end of every product. For small ones that takes longer than the product, and where other
programs have the cores a hundred times as long.
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
