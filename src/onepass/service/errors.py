"""The exception that refuses a request: it is answered as problem details (RFC 9457)."""

from collections.abc import Mapping
from typing import Any

__all__ = ["ProblemError"]


class ProblemError(Exception):
    """A request that was refused, with nothing changed.

    Parameters
    ----------
    status : of the HTTP answer
    title : the kind of problem, the same words for all of its kind
    detail : what was given, what is allowed, what to do; one sentence or two
    field : the part of the request that is to blame, such as ``x.km`` or ``rows[3].y``
    retry_after : seconds after which the same request may succeed
    more : further members of the answer

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
        retry_after: float | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(f"{title}: {detail}")
        self.status = status
        self.title = title
        self.detail = detail
        self.field = field
        self.retry_after = retry_after
        self.more: dict[str, Any] = dict(more or {})

    def body(self) -> dict[str, Any]:
        """The members of the answer's body."""
        own = {"title": self.title, "status": self.status, "detail": self.detail}
        return own | ({} if self.field is None else {"field": self.field}) | self.more
