"""How the service runs: everything that the command line can say, in one frozen record."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["ServiceSettings"]


@dataclass(frozen=True)
class ServiceSettings:
    """Settings of a service; the defaults are those of the command.

    Parameters
    ----------
    data : folder with the state, created if there is none
    events : address of a PostgreSQL database that keeps the events; None: a SQLite file in the folder
    follow : whether to predict only, with what a learner elsewhere writes into ``events``
    durability : "full" or "relaxed", as for `onepass.files.events.EventStore`
    queue : requests of a model that may wait to be learned; more are answered with 429
    deadline : seconds that a request may wait in the queue
    max_body : bytes of a request's body
    keep_pending : seconds for which a prediction waits for its label
    keep_events : seconds for which learned events keep their content; None: for good
    rate_limit : requests per second and token; None: no limit
    """

    data: Path
    events: str | None = None
    follow: bool = False
    durability: str = "full"
    queue: int = 4096
    deadline: float = 10.0
    max_body: int = 32 * 2**20
    keep_pending: float = 30 * 86400.0
    keep_events: float | None = None
    rate_limit: float | None = None

    @property
    def is_shared_learner(self) -> bool:
        """Whether the service writes events that other machines can get at."""
        return self.events is not None and not self.follow
