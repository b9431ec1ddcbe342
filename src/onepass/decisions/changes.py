"""Changes of a bandit: everything that makes it another one, as plain data that a journal can keep."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from onepass._typing import FloatArray

__all__ = ["Change", "Journal"]


@dataclass(frozen=True)
class Change:
    """Something that happened to a bandit.

    Parameters
    ----------
    kind : {"decision", "reward", "learn", "expiry", "arm"}
    data : dict
        What JSON can hold.
    context : array, optional
        Of a decision ``(d,)``, or of what was learned ``(n, d)``.
    key : str
        The id of a decision; other changes have none.
    """

    kind: str
    data: dict[str, Any]
    context: FloatArray | None = None
    key: str = ""


class Journal(Protocol):
    """Where changes are written before they count."""

    def write(self, make: Callable[[], list[Change]], replay: Callable[[Change], None]) -> list[Change]:
        """Replay what others have written meanwhile, make changes, and return them once they are written.

        All of them are written or none; they are not applied yet.
        """

    def applied(self) -> None:
        """Take note that the last changes were applied: the moment for a snapshot."""
