"""Settings of the service: what the command line can set, in one frozen record."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["SERVICE", "ServiceSettings"]

SERVICE = "service"
"""Name of what a service has one of: its lock, its right to write events, and the stream with the id of its store."""


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of a service; the defaults are those of the command.

    Parameters
    ----------
    data : folder with models and events, created if it does not exist
    events : address of a PostgreSQL database that keeps the events; None for a SQLite file in the folder
    follow : whether only to predict, with the models that another service with the same ``events`` learns
    durability : "full" or "relaxed", as for `onepass.events.EventStore`
    queue : how many requests may wait to be learned, per model; more are answered with 429
    deadline : seconds that a request may wait in the queue; then it is answered with 503
    max_body : largest size of a request's body, in bytes
    keep_pending : seconds for which a prediction waits for its label
    expire_overdue : whether what has waited too long by the clock of the system expires at the start, although the
        service has not run for so long
    keep_events : seconds for which learned events keep their content; None for ever
    rate_limit : most requests per second for each token; None for no limit
    max_models : how many models there may be, because each needs open files; None for no limit
    """

    data: Path
    events: str | None = None
    follow: bool = False
    durability: str = "full"
    queue: int = 4096
    deadline: float = 10.0
    max_body: int = 32 * 2**20
    keep_pending: float = 30 * 86400.0
    expire_overdue: bool = False
    keep_events: float | None = None
    rate_limit: float | None = None
    max_models: int | None = None

    @property
    def shortest_keep(self) -> float:
        """The shortest time in seconds for which something is kept."""
        return min(self.keep_pending, float("inf") if self.keep_events is None else self.keep_events)

    @property
    def is_shared_learner(self) -> bool:
        """Whether the service writes events that other machines can get at."""
        return self.events is not None and not self.follow
