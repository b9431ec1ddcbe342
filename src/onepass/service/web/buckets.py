"""A token bucket: so many things per second on average, with some reserve for those that come at once."""

import time
from collections.abc import Callable

__all__ = ["Bucket"]


class Bucket:
    """Allows ``rate`` things per second, and up to ``reserve`` at once.

    Examples
    --------
    >>> now = [0.0]
    >>> bucket = Bucket(2.0, 3.0, clock=lambda: now[0])
    >>> [bucket.take() for _ in range(4)]  # seconds to wait
    [0.0, 0.0, 0.0, 0.5]
    >>> now[0] = 0.5
    >>> bucket.take()
    0.0
    """

    __slots__ = ("_clock", "_level", "_rate", "_reserve", "_time")

    def __init__(self, rate: float, reserve: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._reserve, self._clock = rate, max(1.0, reserve), clock
        self._level, self._time = self._reserve, clock()

    def take(self) -> float:
        """Take one; returns the seconds after which there is one, 0 if it was taken."""
        now = self._clock()
        self._level = min(self._reserve, self._level + (now - self._time) * self._rate)
        self._time = now
        if self._level >= 1.0:
            self._level -= 1.0
            return 0.0
        return (1.0 - self._level) / self._rate
