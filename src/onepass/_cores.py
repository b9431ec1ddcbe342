"""How many cores this process may use: fewer than the machine has where a container or a batch system says so."""

import os

__all__ = ["available_cores"]


def available_cores() -> int:
    """Return the number of cores that this process may use; where the system can't say, all of the machine's.

    Examples
    --------
    >>> available_cores() >= 1
    True
    """
    if hasattr(os, "sched_getaffinity"):  # neither macOS nor Windows have it
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
