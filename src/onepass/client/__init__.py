"""A client of `onepass serve`: predictions, labels and decisions over HTTP.

Everything that changes a model is sent with an id, so a request whose answer got lost can be sent again, and the
service learns it once. The client sends requests again by itself when the connection breaks, the service is busy or its
database is away, until ``timeout`` has passed.

>>> client = Client("http://127.0.0.1:8080", token="onepass_...")  # doctest: +SKIP
>>> price = client.model("price")  # doctest: +SKIP
>>> price.predict({"km": 12000, "car": "compact"}, id="offer 17").mean  # doctest: +SKIP
8450.2
>>> price.label("offer 17", 8200).status  # days later  # doctest: +SKIP
'learned'
"""

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode
from uuid import uuid4

from onepass._extras import require
from onepass.client.payloads import arrow_stream, is_pairs, json_lines, plain, table_of

require("client", "onepass.client")

import httpx

__all__ = ["Client", "Decision", "Forecast", "Learned", "Model", "Prediction", "ServiceError"]

_ARROW = "application/vnd.apache.arrow.stream"
_LINES = "application/x-ndjson"
_AGAIN = {429, 503}  # nothing was changed, and later it may work
_IN_VAIN = (httpx.UnsupportedProtocol, httpx.LocalProtocolError)  # e.g. a token that no header can hold
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 2.0  # seconds between two attempts


class ServiceError(Exception):
    """The service has refused a request, or could not be reached.

    A refused request has changed nothing.

    Attributes
    ----------
    status : status of the HTTP answer; 0 if the service could not be reached
    title, detail : what was wrong, in words
    field : the part of the request that is wrong, if the service knows
    """

    def __init__(self, status: int, title: str, detail: str, field: str | None = None) -> None:
        super().__init__(f"{title}: {detail}" + ("" if field is None else f" ({field})"))
        self.status = status
        self.title = title
        self.detail = detail
        self.field = field


class Prediction(NamedTuple):
    """What is predicted for a row, under the names that `onepass.Prediction` has.

    Numbers and counts have ``mean``, ``std``, ``var``, ``epistemic``, ``aleatoric`` and `interval`; classes have
    ``label`` and ``probabilities``. What a target does not have is None.
    """

    mean: float | None
    std: float | None
    epistemic: float | None
    """The part of the variance that comes from not knowing the weights."""
    aleatoric: float | None
    """The part of the variance that no data can reduce: the noise."""
    intervals: dict[float, tuple[float, float]]
    """Lower and upper limits by the levels that were asked for."""
    label: str | None
    probabilities: dict[str, float] | None
    version: int
    id: str | None
    learned: bool

    @property
    def var(self) -> float | None:
        """Variance of the target."""
        return None if self.std is None else self.std**2

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper limits with probability ``level`` between them, of a level that was asked for."""
        if level not in self.intervals:
            known = ", ".join(map(str, self.intervals)) or "none, as classes have probabilities"
            raise ValueError(f"level must be one of those passed to predict ({known}), got {level}")
        return self.intervals[level]


class Forecast(NamedTuple):
    """The next steps of a series: a mean, a standard deviation and limits for each."""

    times: list[str | float]
    """In UTC; numbers where the times of the series are numbers."""
    mean: list[float]
    std: list[float]
    intervals: dict[float, tuple[list[float], list[float]]]
    """Lower and upper limits of all steps, by the levels that were asked for."""
    total: Prediction
    """The sum over all steps."""
    recent: list[tuple[str | float, float]]
    """Times and values of the latest steps, if they were asked for."""
    version: int

    def interval(self, level: float = 0.95) -> tuple[list[float], list[float]]:
        """Lower and upper limits of all steps, of a level that was asked for."""
        if level not in self.intervals:
            known = ", ".join(map(str, self.intervals)) or "none"
            raise ValueError(f"level must be one of those passed to forecast ({known}), got {level}")
        return self.intervals[level]


class Learned(NamedTuple):
    """What was done with a row, label or reward: ``status`` is ``"learned"``, or ``"waiting"`` for an early label."""

    id: str
    status: str
    version: int
    n_seen: int


class Decision(NamedTuple):
    """What a bandit has chosen."""

    id: str
    arm: Any
    arms: list[Any]
    propensity: float
    version: int


class Client:
    """A connection to a service.

    Parameters
    ----------
    address : address of the service, such as ``"http://127.0.0.1:8080"``
    token : token of the service; None if it runs with ``--no-auth``
    timeout : seconds to keep trying while the service can't be reached, is busy, or can't reach its database

    Examples
    --------
    >>> from onepass.client import Client
    >>> Client("127.0.0.1:8080")
    Traceback (most recent call last):
    ValueError: address must be an http or https address such as 'http://127.0.0.1:8080', got '127.0.0.1:8080'
    """

    def __init__(self, address: str, token: str | None = None, *, timeout: float = 30.0) -> None:
        _check_address(address)
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout)
        self._timeout = timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def models(self) -> list[dict[str, Any]]:
        """Status of every model."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/models")["models"]
        return found

    def model(self, name: str) -> "Model":
        """The model with this name; whether it exists is found out with the first request."""
        return Model(self, name)

    def create(self, name: str, content: bytes | Mapping[str, Any]) -> "Model":
        """Make a model: from the bytes of a model file, or from a description.

        Parameters
        ----------
        name : name of the model
        content : for example ``Path("price.onepass").read_bytes()``, or ``{"rows": [...], "target": "price"}``
        """
        self._put(_path(name), content)
        return Model(self, name)

    def delete(self, name: str) -> None:
        """Delete a model and all its events."""
        self._json("DELETE", _path(name))

    def tokens(self) -> list[dict[str, Any]]:
        """All tokens: name, scope, models, and when each was made, expires and was last used; without the secrets."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/tokens")["tokens"]
        return found

    def create_token(
        self, name: str, scope: str, *, models: Iterable[str] | None = None, expires: datetime | timedelta | None = None
    ) -> str:
        """Make a token and return it; it is not shown again.

        Parameters
        ----------
        name : that no other token has
        scope : ``"read"``, ``"learn"`` or ``"admin"``
        models : names of the models that it is for; None: all
        expires : when it stops being valid, as a time with a zone or as the time from now; None: never
        """
        until = datetime.now(UTC) + expires if isinstance(expires, timedelta) else expires
        request: dict[str, Any] = {"name": name, "scope": scope}
        request |= {} if models is None else {"models": list(models)}
        request |= {} if until is None else {"expires": until.isoformat(timespec="seconds")}
        secret: str = self._json("POST", "/v1/tokens", request)["token"]
        return secret

    def revoke_token(self, name: str) -> None:
        """Make a token invalid."""
        self._json("DELETE", f"/v1/tokens/{quote(name, safe='')}")

    def _put(self, path: str, content: bytes | Mapping[str, Any]) -> Any:
        if isinstance(content, Mapping):
            return self._json("PUT", path, content)
        return self._send("PUT", path, content, "application/octet-stream").json()

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        content = b"" if body is None else json.dumps(plain(body, "the body")).encode()
        answer = self._send(method, path, content, "application/json")
        return answer.json() if answer.content else None

    def _send(self, method: str, path: str, content: bytes, kind: str, accept: str | None = None) -> httpx.Response:
        """Send a request until it is answered; one that may not be repeated has to come with an id."""
        headers = {"Content-Type": kind} if content else {}
        if accept is not None:
            headers["Accept"] = accept
        deadline, pause = time.monotonic() + self._timeout, _FIRST_PAUSE
        while True:
            try:
                answer = self._http.request(method, path, content=content or None, headers=headers)
            except httpx.TransportError as error:
                if isinstance(error, _IN_VAIN) or time.monotonic() + pause > deadline:
                    raise ServiceError(0, "not reached", f"{self._http.base_url}: {error}") from None
            else:
                if answer.status_code not in _AGAIN or time.monotonic() + pause > deadline:
                    return _checked(answer)
                pause = max(pause, float(answer.headers.get("Retry-After", 0.0)))
            time.sleep(pause)
            pause = min(2.0 * pause, _LONGEST_PAUSE)


class Model:
    """One model of a service; made by `Client.model`."""

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self._client = client
        self._path = _path(name)

    def __repr__(self) -> str:
        return f"Model({self.name!r})"

    def status(self) -> dict[str, Any]:
        """Rows learned, version, schema, and how many predictions and labels wait."""
        return self._client._json("GET", self._path)  # type: ignore[no-any-return]

    def metrics(self) -> dict[str, Any]:
        """How well every row was predicted before it was learned."""
        return self._client._json("GET", f"{self._path}/metrics")  # type: ignore[no-any-return]

    def weights(self) -> dict[str, list[dict[str, Any]]]:
        """Effect of each feature, with its uncertainty, on the target or on each class."""
        found: dict[str, list[dict[str, Any]]] = self._client._json("GET", f"{self._path}/weights")["weights"]
        return found

    def waiting(self) -> dict[str, Any]:
        """The oldest predictions that wait for a label, and labels that wait for a prediction."""
        return self._client._json("GET", f"{self._path}/waiting")  # type: ignore[no-any-return]

    def file(self) -> bytes:
        """The model as a file that `onepass.load` reads."""
        return self._client._send("GET", f"{self._path}/file", b"", "").content

    def snapshot(self) -> int:
        """Save a snapshot now; returns its version."""
        return int(self._post("snapshot")["version"])

    def rollback(self, version: int) -> int:
        """Go back to an earlier version; returns the new version number, because going back is an event too."""
        return int(self._post("rollback", {"version": version})["version"])

    def set_shadow(self, content: bytes | Mapping[str, Any]) -> int:
        """Let a candidate, given as in `Client.create`, learn the same rows, to compare; returns the version."""
        return int(self._client._put(f"{self._path}/shadow", content)["version"])

    def drop_shadow(self) -> None:
        """Delete the candidate."""
        self._client._json("DELETE", f"{self._path}/shadow")

    def promote(self) -> int:
        """Replace the model by the candidate; returns the version."""
        return int(self._post("promote")["version"])

    def forget(self, id: str) -> int:
        """Delete what is stored of a prediction and its label; returns how many events had content."""
        found = self._client._json("DELETE", f"{self._path}/predictions/{quote(id, safe='')}")
        return int(found["forgotten"])

    def predict(
        self,
        x: Any,
        *,
        id: str | None = None,
        key: str | None = None,
        level: float | Sequence[float] = 0.95,
    ) -> Prediction:
        """Predict a row; with an id the service stores it until `label` gives the target.

        Parameters
        ----------
        x : values by column, as a mapping or a pandas Series, or the values of all columns in order. Missing values may
            be None or NaN; dates and times may be those of Python, NumPy or pandas
        id : id of the prediction
        key : for a fleet of perceptrons, the key whose perceptron answers
        level : probability of the prediction's interval, or several of them
        """
        levels = [level] if isinstance(level, int | float) else list(level)
        if not levels:
            raise ValueError("level must be a number above 0 and below 1, or several of them, got none")
        first, *more = levels
        body = {"x": x, "id": id, "key": key, "level": first, "levels": more}
        answer = self._post("predict", {name: value for name, value in body.items() if value is not None})
        found: dict[str, Any] = dict.fromkeys(Prediction._fields) | {"learned": False, "intervals": {}}
        limits = [{"level": first, **answer}] if "lower" in answer else []
        limits += answer.pop("intervals", [])
        found |= {name: value for name, value in answer.items() if name in Prediction._fields}
        found["intervals"] = {one["level"]: (one["lower"], one["upper"]) for one in limits}
        return Prediction(**found)

    def forecast(
        self,
        horizon: int,
        *,
        key: str | None = None,
        inputs: Sequence[Mapping[str, Any]] | None = None,
        level: float | Sequence[float] = (0.8, 0.95),
        recent: int = 0,
    ) -> Forecast:
        """Predict the next values of a series; learn its values with ``learn({"time": ...}, y)``.

        Parameters
        ----------
        horizon : number of steps
        key : of many series, which of them
        inputs : of a forecaster with inputs, those of each step by their names
        level : probability of the intervals, or several of them
        recent : how many of the latest values to return as well, of those that may still be revised
        """
        levels = [level] if isinstance(level, int | float) else list(level)
        body: dict[str, Any] = {"horizon": horizon, "levels": levels, "recent": recent}
        body |= {} if key is None else {"key": key}
        answer = self._post("forecast", body if inputs is None else {**body, "inputs": [dict(one) for one in inputs]})
        steps, total = answer["steps"], answer["total"]
        limits = [[(one["lower"], one["upper"]) for one in step["intervals"]] for step in steps]
        found = {
            one["level"]: ([own[i][0] for own in limits], [own[i][1] for own in limits])
            for i, one in enumerate(total["intervals"])
        }
        sums: dict[str, Any] = dict.fromkeys(Prediction._fields) | {"learned": False, "version": answer["version"]}
        sums |= {"mean": total["mean"], "std": total["std"]}
        sums["intervals"] = {one["level"]: (one["lower"], one["upper"]) for one in total["intervals"]}
        return Forecast(
            [step["time"] for step in steps],
            [step["mean"] for step in steps],
            [step["std"] for step in steps],
            found,
            Prediction(**sums),
            [(one["time"], one["y"]) for one in answer["recent"]],
            answer["version"],
        )

    def learn(self, x: Any, y: Any, *, id: str | None = None, key: str | None = None) -> Learned:
        """Learn a row; on return it is stored durably, and the model has learned it."""
        body = {"x": x, "y": y, "id": id or uuid4().hex} | ({} if key is None else {"key": key})
        return Learned(**self._post("learn", body))

    def label(self, id: str, y: Any) -> Learned:
        """Give the target of an earlier prediction."""
        return Learned(**self._post("label", {"id": id, "y": y}))

    def label_many(self, pairs: Any) -> list[Learned | ServiceError]:
        """Give the targets of many predictions; returns, for each, whether it was learned or why it was refused.

        Parameters
        ----------
        pairs : ids of predictions, each with its target: a mapping, a pandas Series with the ids as its index, or pairs
        """
        items = pairs.items() if hasattr(pairs, "items") else pairs
        content = json_lines({"id": id, "y": y} for id, y in items)
        deadline = time.monotonic() + self._client._timeout
        while True:
            answer = self._client._send("POST", f"{self._path}/label", content, _LINES)
            lines = [json.loads(line) for line in answer.text.splitlines()]
            is_busy = any(line.get("status") in _AGAIN for line in lines)
            if not is_busy or time.monotonic() + _LONGEST_PAUSE > deadline:
                return [_problem(line) if "title" in line else Learned(**line) for line in lines]
            time.sleep(_LONGEST_PAUSE)  # then all once more: those that were learned get the same answer again

    def decide(
        self, context: Sequence[float], *, id: str | None = None, n: int = 1, arms: Sequence[str | int] | None = None
    ) -> Decision:
        """Let a bandit choose an arm; give its reward later with `reward`."""
        body: dict[str, Any] = {"context": context, "id": id or uuid4().hex, "n": n}
        return Decision(**self._post("decide", body if arms is None else {**body, "arms": list(arms)}))

    def arms(self, context: Sequence[float]) -> list[dict[str, Any]]:
        """What a bandit expects of each arm in a context; no decision is made."""
        found: list[dict[str, Any]] = self._post("arms", {"context": context})["arms"]
        return found

    def change_arm(self, arm: str | int, change: str, features: Sequence[float] | None = None) -> dict[str, Any]:
        """Add, remove, pause or resume an arm: ``change`` is ``"add"``, ``"remove"``, ``"pause"`` or ``"resume"``."""
        body: dict[str, Any] = {"arm": arm, "change": change}
        found: dict[str, Any] = self._post("arm", body if features is None else {**body, "features": list(features)})
        return found

    def expire(self, after: float, default: float | None = None) -> int:
        """Expect no more rewards for decisions older than ``after`` seconds; learn ``default`` for each, if given."""
        return int(self._post("expire", {"after": after, "default": default})["expired"])

    def reward(self, id: str, reward: float, *, arm: str | int | None = None) -> Learned:
        """Give a bandit the reward of a decision."""
        body: dict[str, Any] = {"id": id, "reward": reward}
        return Learned(**self._post("reward", body if arm is None else {**body, "arm": arm}))

    def explain(self, x: Any) -> dict[str, Any]:
        """What each column adds to the prediction of a row."""
        return self._post("explain", {"x": x})

    def learn_rows(self, rows: Any, *, id: str | None = None) -> Learned:
        """Learn many rows at once: all of them or, if one is bad, none.

        Parameters
        ----------
        rows : a data frame, an Arrow table or a list of mappings with the target among the columns; or ``(x, y)`` pairs
        id : id of this batch; by default a new random one
        """
        if is_pairs(rows) and rows:
            content, kind = json_lines({"x": x, "y": y} for x, y in rows), _LINES
        else:
            content, kind = arrow_stream(table_of(rows, None)), _ARROW
        query = urlencode({"id": id or uuid4().hex})
        answer = self._client._send("POST", f"{self._path}/learn?{query}", content, kind)
        return Learned(**answer.json())

    def predict_rows(self, rows: Any, *, level: float = 0.95) -> Any:
        """Predict many rows; returns an Arrow table of predictions.

        Parameters
        ----------
        rows : a data frame, an Arrow table, a list of mappings from columns to values, or a list of lists with the
            values of all columns
        level : probability of the intervals
        """
        import pyarrow as pa

        content = arrow_stream(table_of(rows, self._columns))
        answer = self._client._send("POST", f"{self._path}/predict?level={level}", content, _ARROW, accept=_ARROW)
        return pa.ipc.open_stream(answer.content).read_all()

    def _columns(self) -> list[str]:
        return [column["name"] for column in self.status()["schema"]["columns"]]

    def _post(self, what: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self._client._json("POST", f"{self._path}/{what}", body)  # type: ignore[no-any-return]


def _check_address(address: str) -> None:
    try:
        url = httpx.URL(address)
        is_web = url.scheme in ("http", "https") and bool(url.host)
    except httpx.InvalidURL:
        is_web = False
    if not is_web:
        raise ValueError(f"address must be an http or https address such as 'http://127.0.0.1:8080', got {address!r}")


def _path(name: str) -> str:
    return f"/v1/models/{quote(name, safe='')}"


def _checked(answer: httpx.Response) -> httpx.Response:
    if answer.is_success:
        return answer
    try:
        problem = _problem(answer.json())
    except (ValueError, KeyError, TypeError):
        problem = ServiceError(answer.status_code, "unexpected answer", answer.text[:200])
    raise problem


def _problem(answer: Mapping[str, Any]) -> ServiceError:
    return ServiceError(answer["status"], answer["title"], answer["detail"], answer.get("field"))
