"""Reading ahead: a thread prepares the next items while the last one is used."""

import threading
from collections.abc import Callable, Iterable, Iterator
from queue import Empty, Full, Queue
from typing import Any, TypeVar

__all__ = ["prefetch"]

_PATIENCE = 1.0  # seconds for a thread to end

T = TypeVar("T")


def prefetch(items: Iterable[T], depth: int = 2, *, meanwhile: Callable[[], object] = lambda: None) -> Iterator[T]:
    """Have a thread prepare the next ``depth`` items while the last one is used.

    ``meanwhile`` is called again and again for as long as there is no item: streams may pause forever.
    """
    queue: Queue[Any] = Queue(depth)
    stop = threading.Event()
    end = object()

    def put(item: Any) -> bool:
        while not stop.is_set():
            try:
                queue.put(item, timeout=0.1)
                return True
            except Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put(item):
                    return
            put(end)
        except BaseException as error:  # to be raised where the items are used
            put(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            try:
                item = queue.get(timeout=0.1)  # in steps, so that Ctrl-C is noticed
            except Empty:
                meanwhile()
                continue
            if item is end:
                return
            if isinstance(item, BaseException):
                raise item
            yield item
    finally:
        stop.set()
        thread.join(_PATIENCE)  # it may sit in a read that never ends; then it ends with the process
