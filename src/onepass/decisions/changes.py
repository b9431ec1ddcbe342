"""Changes of a bandit: everything that makes it another one, as plain data that an event store can keep."""

from dataclasses import dataclass
from typing import Any

from onepass._typing import FloatArray

__all__ = ["Change"]


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
