"""The exception that refuses a request: it is answered as problem details (RFC 9457)."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from onepass.tables.reasons import Reason

__all__ = ["ProblemError", "StoringProblemError", "reason_in_words"]


class ProblemError(Exception):
    """A request that was refused, with nothing changed.

    Parameters
    ----------
    status : of the HTTP answer
    title : the kind of problem, the same words for all of its kind
    detail : what was given, what is allowed, what to do; one sentence or two
    field : the part of the request that is to blame, such as ``x.km``
    code : what is wrong with it, for programs, such as ``not_a_number``
    retry_after : seconds after which the same request may succeed
    more : further members of the answer
    place : which of many is to blame, as what they are called and a number from 1, such as ``("line", 3)``

    Examples
    --------
    >>> ProblemError(422, "bad value", "km must be a number, got 'far'", field="x.km").body()
    {'title': 'bad value', 'status': 422, 'detail': "km must be a number, got 'far'", 'field': 'x.km'}
    """

    def __init__(
        self,
        status: int,
        title: str,
        detail: str,
        *,
        field: str | None = None,
        code: str | None = None,
        retry_after: float | None = None,
        more: Mapping[str, Any] | None = None,
        place: tuple[str, int] | None = None,
    ) -> None:
        self._words = detail
        self.place = place
        self.status = status
        self.title = title
        self.field = field
        self.code = code
        self.retry_after = retry_after
        self.more: dict[str, Any] = dict(more or {})
        super().__init__(f"{title}: {self.detail}")

    @classmethod
    def of(cls, reason: "Reason", field: str, title: str = "bad value") -> Self:
        """A value that a table gives a reason to refuse."""
        return cls(422, title, str(reason), field=field, code=reason.code)

    @property
    def detail(self) -> str:
        """What was given, what is allowed, what to do, and in which of many."""
        return self._words if self.place is None else f"{self.place[0]} {self.place[1]}: {self._words}"

    def at(self, what: str, number: int) -> "ProblemError":
        """The same problem of one of many, such as ``at("line", 3)``."""
        return ProblemError(
            self.status,
            self.title,
            self._words,
            field=self.field,
            code=self.code,
            retry_after=self.retry_after,
            more=self.more,
            place=(what, number),
        )

    def body(self) -> dict[str, Any]:
        """The members of the answer's body."""
        own = {"title": self.title, "status": self.status, "detail": self.detail}
        blamed = {"field": self.field, "code": self.code}
        own |= {name: value for name, value in blamed.items() if value is not None}
        return own | dict([] if self.place is None else [self.place]) | self.more


class StoringProblemError(ProblemError):
    """A request that was refused because the event store can't be used; the log has the outage, not each request."""


def reason_in_words(error: Exception) -> str:
    """What an error says, without the path or address it is about: anyone with a token may read it.

    Examples
    --------
    >>> reason_in_words(FileNotFoundError(2, "No such file or directory", "/srv/state/events.sqlite"))
    'No such file or directory'
    """
    words = error.strerror if isinstance(error, OSError) else str(error)
    return words or type(error).__name__
