"""The time by which what a service keeps grows old: that which the service has seen pass.

After a start, a clock that is a month ahead and a service that was off for a month look alike. In both cases everything
that waits for a label would be a month older at once, and be deleted. So only time during which the service ran counts,
and pauses that are short. A longer one is made up for slowly: nothing is deleted before it has waited for 90 % of its
time while the service ran, unless the operator says that the clock is right.
"""

import logging
import threading
from collections.abc import Callable
from datetime import timedelta

__all__ = ["ServiceClock"]

_log = logging.getLogger(__name__)
_SHARE = 0.1  # of the time for which things are kept: a shorter pause counts; and by so much a longer one is caught up
_SAVING = 60.0  # seconds between two notes of the time


class ServiceClock:
    """A clock for ages, shared by the threads of a service.

    Parameters
    ----------
    since : until when the service has run before, in seconds since 1970
    keep : the shortest time for which things are kept, in seconds
    save : notes until when the service has run
    wall, steady : the clock of the system, and one that nobody can set

    Examples
    --------
    >>> hours = [1000.0]
    >>> def read(): return 3600.0 * hours[0]
    >>> clock = ServiceClock(since=0.0, keep=3600.0 * 24, save=lambda time: None, wall=read, steady=lambda: 0.0)
    >>> clock.now() / 3600.0, clock.behind() / 3600.0
    (0.0, 1000.0)
    >>> hours[0] = 2.0  # the clock is set right
    >>> clock.now() / 3600.0, clock.behind() / 3600.0
    (2.0, 0.0)
    """

    def __init__(
        self,
        since: float,
        keep: float,
        save: Callable[[float], None],
        *,
        wall: Callable[[], float],
        steady: Callable[[], float],
    ) -> None:
        self._time, self._allowed = since, _SHARE * keep
        self._save_time, self._wall, self._steady = save, wall, steady
        self._looked = steady()
        self._saved = float("-inf")
        self._is_behind = False
        self._lock = threading.Lock()

    def now(self) -> float:
        """Seconds since 1970, as far as the service has seen them pass; never after the clock of the system."""
        with self._lock:
            wall, steady = self._wall(), self._steady()
            seen = self._time + (1.0 + _SHARE) * (steady - self._looked)
            is_behind = wall - seen > self._allowed
            self._time, self._looked = seen if is_behind else wall, steady
            if is_behind and not self._is_behind:
                _log.warning(
                    "the clock is %s ahead of the time for which this service has run; what would expire by this jump "
                    "is kept: if the clock is right, start the service once with --expire-overdue",
                    timedelta(seconds=round(wall - seen)),
                )
            self._is_behind = is_behind
            if steady - self._saved >= _SAVING:
                self._save(steady)
            return self._time

    def behind(self) -> float:
        """Seconds by which the clock of the system is ahead of this one; 0 if nothing is kept for longer by that."""
        now = self.now()
        return self._wall() - now if self._is_behind else 0.0

    def close(self) -> None:
        """Note the time for the next start."""
        self.now()
        self._save(self._steady())

    def _save(self, steady: float) -> None:
        self._saved = steady
        try:
            self._save_time(self._time)
        except OSError as error:  # e.g. a full disk: the next start then counts a longer pause
            _log.warning("the time until which the service has run can't be noted: %s", error)
