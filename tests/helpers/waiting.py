"""Waiting for something that another process or thread does, instead of for some seconds to pass."""

import time
from collections.abc import Callable

__all__ = ["wait_until"]


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 120.0) -> None:
    """Return as soon as a condition holds; fail if it does not by a deadline that is generous on a busy machine.

    Parameters
    ----------
    condition : called every few milliseconds
    what : what is awaited, for the message of a failure
    seconds : the deadline
    """
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"waited {seconds:g} seconds in vain: {what}")
        time.sleep(0.005)
