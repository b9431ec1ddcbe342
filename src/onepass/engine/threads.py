"""One BLAS thread for products that are too small to share.

The threads of a BLAS synchronise at the end of every product. For small products that takes longer than the product
itself, and a hundred times as long where other programs use the cores.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController

__all__ = ["threads_for"]

_WORTH_SHARING = 1024  # rows of a covariance


_Changed = list[tuple[Any, int]]
"""Libraries, and how many threads each had."""


@cache
def _libraries() -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Those whose number of threads holds for the process, and those with one for each thread."""
    # Looks through all libraries that are loaded, which takes a while.
    found = ThreadpoolController().select(user_api="blas").lib_controllers
    by_thread = [getattr(own, "threading_layer", "") == "openmp" for own in found]
    shared = tuple(own for own, is_by_thread in zip(found, by_thread, strict=True) if not is_by_thread)
    return shared, tuple(own for own, is_by_thread in zip(found, by_thread, strict=True) if is_by_thread)


def _to_one(libraries: tuple[Any, ...]) -> _Changed:
    changed = [(own, n) for own in libraries if (n := own.get_num_threads()) != 1]
    for library, _ in changed:
        _set(library, 1)
    return changed


def _set(library: Any, n_threads: int) -> None:
    """Set a number of threads from whichever thread this is: threadpoolctl lets only the first that has set one."""
    give_up = getattr(type(library), "clear_controlling_thread", None)
    if give_up is not None:
        give_up(force=True)
    library.set_num_threads(n_threads)
    if give_up is not None:
        give_up(force=True)


class _OneThread(AbstractContextManager[None]):
    """One thread for every BLAS, where it has more: one row at a time, even to set them costs more than a product.

    A number of threads that holds for the process is as before when the last of the threads that need it has ended.
    """

    _lock = Lock()
    _active = 0
    _shared: _Changed = []  # noqa: RUF012 - of the process

    def __enter__(self) -> None:
        shared, by_thread = _libraries()
        with _OneThread._lock:
            if not _OneThread._active:
                _OneThread._shared = _to_one(shared)
            _OneThread._active += 1
        self._own = _to_one(by_thread)

    def __exit__(self, *_: object) -> None:
        for library, n_threads in self._own:
            _set(library, n_threads)
        with _OneThread._lock:
            _OneThread._active -= 1
            if not _OneThread._active:
                for library, n_threads in _OneThread._shared:
                    _set(library, n_threads)


def threads_for(size: int) -> AbstractContextManager[Any]:
    """As many threads as products with a covariance of this size are worth."""
    return nullcontext() if size >= _WORTH_SHARING else _OneThread()
