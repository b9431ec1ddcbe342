"""Outages in the log: a line when one begins, and one when it ends, however many requests come meanwhile."""

import logging
import time
from collections.abc import Callable

__all__ = ["Outage"]

_log = logging.getLogger(__name__)


class Outage:
    """Whether something can't be used at present; written by one thread.

    Parameters
    ----------
    what : the thing that may fail, such as ``"model price"``
    clock : in seconds

    Attributes
    ----------
    reason : why it can't be used; None if it can
    """

    def __init__(self, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.reason: str | None = None
        self._what, self._clock = what, clock
        self._since, self._refused = 0.0, 0

    def failed(self, reason: str, refused: int = 0) -> None:
        """It has failed, and so many requests were refused."""
        if self.reason is None:
            self._since, self._refused = self._clock(), 0
            _log.error("%s: an outage begins: %s", self._what, reason)
        self.reason = reason
        self._refused += refused

    def ended(self) -> None:
        """It works; nothing is said if it has worked before."""
        if self.reason is not None:
            seconds = self._clock() - self._since
            _log.warning(
                "%s: the outage ended after %.1f s; %s refused",
                self._what,
                seconds,
                "1 request was" if self._refused == 1 else f"{self._refused} requests were",
                extra={"seconds": seconds, "refused": self._refused},
            )
            self.reason = None
