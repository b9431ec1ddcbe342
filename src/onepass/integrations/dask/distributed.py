"""Learning on a cluster: rows stay where they are, beliefs travel. Needs Dask (``pip install 'onepass[dask]'``).

Every partition, chunk or file is a shard. In each round a worker learns its shards from the merged belief without their
own contribution (see `onepass.merging`), and what moves between workers is one `onepass.merging.Site` a shard, added up
along a tree. All of it are ordinary Dask tasks whose results depend on their inputs alone and are added in a fixed
order: when a worker dies, Dask runs its tasks again elsewhere, and the result is the same, bit for bit among machines
of one kind.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import reduce
from os import PathLike, fspath
from typing import Any, TypeAlias

import numpy as np

from onepass._validation import as_count
from onepass.integrations.dask.scoring import Tally
from onepass.merging import Merging, Site
from onepass.models.fleet import PerceptronFleet
from onepass.models.fleet.keys import as_keys, parts_of
from onepass.models.perceptron import Prediction

try:
    import dask.array as da
    import dask.dataframe as dd
    from distributed import Client, as_completed, default_client, get_worker
except ImportError as error:
    raise ImportError(f"onepass.distributed needs Dask: pip install 'onepass[dask]' ({error})") from None

__all__ = ["Batch", "Client", "Evaluation", "evaluate", "fit", "fit_fleet", "get_worker", "predict"]

Batch: TypeAlias = tuple[Any, Any]
Read: TypeAlias = Callable[[str], Iterable[Batch]]
Progress: TypeAlias = Callable[[int, int], None]

_ROWS = 8192  # learned at a time: what converting a shard's numbers takes then fits a core's own cache
_READ = 65_536  # rows read from a file at a time
_FAN_IN = 8  # sites added by one task
_HEAD = 100  # rows that an estimator is started with, at least
_METHODS = ("predict", "predict_proba", "decision_function")
_NO_ROWS = "data holds no rows, so there is nothing to learn"


def fit(
    model: Any,
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    client: Any = None,
    rounds: int = 2,
    read: Read | None = None,
    keep: bool = True,
    progress: Progress | bool = False,
) -> Any:
    """Learn all rows on a cluster; the model given is the prior and stays as it is, the one learned is returned.

    Parameters
    ----------
    model : perceptron, network or estimator
        As for `onepass.merge`. An estimator that has not been fitted is started with the first rows.
    data : Dask data frame, pair of Dask arrays, or list of files
        A shard each partition, chunk of rows, or file: Parquet, or whatever ``read`` reads, where the workers see it.
    target : str, optional
        Name of the target's column, for data frames and Parquet files.
    features : list of str, optional
        Columns to learn from; all others by default, in the order of the (first) file.
    client : distributed.Client, optional
        By default the current one, or else a cluster of processes on this machine, for as long as it takes.
    rounds : int
        How often each shard is learned. 1 merges once, which is exact for linear outputs with fixed noise; 2 brings the
        rest as close to a sequential pass as another order of the rows would.
    read : function, optional
        Turns the name of a file into batches ``(X, y)``. It runs on the workers.
    keep : bool
        Keep the shards of files in the workers' memory between rounds; otherwise they are read again in every round.
        Data frames and arrays are kept.
    progress : bool or function
        True draws a bar; a function is called with the shards learned so far and all that will be.

    Examples
    --------
    >>> import dask.array as da, onepass
    >>> from distributed import Client
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 3))
    >>> y = X @ [1.0, -2.0, 0.5] + rng.normal(size=2000)
    >>> prior = onepass.BayesianPerceptron(3, "linear", noise=1.0)
    >>> data = da.from_array(X, chunks=(500, 3)), da.from_array(y, chunks=500)
    >>> with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
    ...     model = fit(prior, data, client=client)
    >>> bool(np.allclose(model.mean, prior.learn(X, y).mean)), model.n_seen
    (True, 2000)
    """
    as_count(rounds, "rounds")
    with ExitStack() as stack:
        client = stack.enter_context(_client(client))
        shards = _shards(client, data, target, features, read, keep)
        given, (model, shards) = model, _started(client, model, shards)
        report = stack.enter_context(_progress(progress, rounds * len(shards)))
        merging = client.submit(_itself, Merging(model), pure=False)  # made here, to refuse at once what can't be
        total = client.submit(Merging.nothing, merging, pure=False)
        sites = [total] * len(shards)
        for number in range(rounds):
            places = _places(client, shards)
            learned = [
                client.submit(_learn_shard, merging, total, site, shard, k, pure=False, **place)
                for k, (site, shard, place) in enumerate(zip(sites, shards, places, strict=True))
            ]
            _await(learned, report, number * len(shards))
            sites, total = _settled(client, merging, (sites, total), learned)
        if model is given and not client.submit(_rows, total, pure=False).result():
            raise ValueError(_NO_ROWS)
        return client.submit(Merging.merged, merging, total, pure=False).result()


def predict(
    model: Any,
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    method: str = "predict",
) -> Any:
    """Predict lazily: what comes back is a Dask collection, computed when it is asked for.

    Parameters
    ----------
    model : perceptron, network or estimator
    data : Dask array or data frame
    target : str, optional
        A column of the data frame to leave aside.
    features : list of str, optional
        Columns to predict from; all others by default.
    method : str
        Of an estimator: ``"predict"``, ``"predict_proba"`` or ``"decision_function"``.

    Returns
    -------
    prediction
        For a data frame a Dask data frame: of a perceptron or network with one output the parts of a `Prediction`, of
        an estimator a column ``method`` or one a class, of a network with more outputs their means. For an array a
        `Prediction` of Dask arrays, or a Dask array.
    """
    if not _gives_prediction(model) and method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(map(repr, _METHODS))}, got {method!r}")
    if isinstance(data, dd.DataFrame):
        chosen = data[_columns(list(data.columns), target, features)]
        meta = _predicted_frame(_sample(chosen), model, method)
        return chosen.map_partitions(_predicted_frame, model, method, meta=meta)
    if not isinstance(data, da.Array) or data.ndim != 2:
        raise TypeError(f"data must be a Dask data frame or a Dask array (n, d), got {type(data).__name__}")
    rows = data.rechunk({1: -1})
    if _gives_prediction(model):
        width = len(Prediction._fields)
        parts = rows.map_blocks(_predicted, model, dtype=np.float64, chunks=(rows.chunks[0], (width,)))
        return Prediction(*(parts[:, i] for i in range(width)))
    sample = np.asarray(_asked(np.zeros((1, rows.shape[1])), model, method))
    if sample.ndim == 1:
        return rows.map_blocks(_asked, model, method, dtype=sample.dtype, drop_axis=1)
    return rows.map_blocks(_asked, model, method, dtype=sample.dtype, chunks=(rows.chunks[0], sample.shape[1:]))


@dataclass(frozen=True)
class Evaluation:
    """How well rows were foretold, each before it was learned: see `evaluate`."""

    rows: int
    log_loss: float
    """Mean of the negative log predictive densities; for labels and classes the log-loss."""
    rmse: float
    """Root mean square of target minus mean; for labels of label minus probability (the root of the Brier score)."""
    accuracy: float
    """Share of labels or classes that were the most probable; NaN for numbers."""
    coverage: float
    """Share of targets in their central 95 % interval; NaN for labels, classes and counts."""
    model: Any
    """What all rows taught, merged."""


def evaluate(
    model: Any,
    data: Any,
    target: str | None = None,
    *,
    features: Sequence[str] | None = None,
    client: Any = None,
    blocks: int = 10,
    read: Read | None = None,
) -> Evaluation:
    """Test-then-train evaluation on a cluster: every row is predicted before it is learned.

    The rows of every shard are cut into ``blocks`` parts. The first parts of all shards are predicted and learned side
    by side, row by row, from the model given, and merged; the second parts go on from the merged belief, and so on. So
    a row is foretold from all parts before its own, of all shards, and from the rows before it in its own part. More
    blocks come closer to one long sequence, and merge more often.

    Parameters
    ----------
    model : perceptron, network or estimator
        The prior; it stays as it is. An estimator that has not been fitted is started with the first rows, which are
        not scored.
    data, target, features, client, read :
        As for `fit`.
    blocks : int
    """
    as_count(blocks, "blocks")
    with _client(client) as client:
        model, shards = _started(client, model, _shards(client, data, target, features, read, keep=True))
        current = client.submit(_itself, model, pure=False)
        tallies = []
        for number in range(blocks):
            merging = client.submit(Merging, current, pure=False)
            parts = [
                client.submit(_test_then_train, merging, current, shard, number, blocks, pure=False, **place)
                for shard, place in zip(shards, _places(client, shards), strict=True)
            ]
            tallies += [client.submit(_first, part, pure=False) for part in parts]
            learned = [client.submit(_second, part, pure=False) for part in parts]
            nothing = client.submit(Merging.nothing, merging, pure=False)
            _, total = _settled(client, merging, ([nothing] * len(shards), nothing), learned)
            current = client.submit(Merging.merged, merging, total, pure=False)
        scores = reduce(Tally.merge, client.gather(tallies))
        if not scores.rows:
            raise ValueError(_NO_ROWS)
        return Evaluation(scores.rows, **scores.values(), model=current.result())


def fit_fleet(
    fleet: PerceptronFleet,
    data: Any,
    key: str,
    target: str,
    *,
    features: Sequence[str] | None = None,
    client: Any = None,
    parts: int | None = None,
) -> PerceptronFleet:
    """Teach a fleet the rows of a Dask data frame: the rows of a key go to one worker, in their order.

    The fleet given stays as it is; the one learned is returned, the same as one process would have learned. Unlike in
    `fit` it is the rows that move, once, since a perceptron of few rows is no smaller than they are.

    Parameters
    ----------
    fleet : PerceptronFleet
    data : Dask data frame
    key, target : str
        Names of columns.
    features : list of str, optional
        Columns to learn from; all others by default.
    client : distributed.Client, optional
        As for `fit`.
    parts : int, optional
        How many parts the keys are divided into; by default one for each worker's thread.
    """
    if not isinstance(fleet, PerceptronFleet):
        raise TypeError(f"fleet must be a PerceptronFleet, got {type(fleet).__name__}")
    if not isinstance(data, dd.DataFrame):
        raise TypeError(f"data must be a Dask data frame, got {type(data).__name__}")
    if key == target:
        raise ValueError(f"key and target must be different columns, got {key!r} for both")
    names = [name for name in _columns(list(data.columns), target, features) if name != key]
    _columns(list(data.columns), key, None)
    with _client(client) as client:
        n = as_count(sum(client.nthreads().values()) if parts is None else parts, "parts")
        frames = client.compute(data[[key, *names, target]].to_delayed())
        cut = [client.submit(_by_key, frame, key, names, target, n, pure=False) for frame in frames]
        learned = []
        for part, own in enumerate(fleet.split(n)):
            pieces = [client.submit(_item, one, part, pure=False) for one in cut]
            learned.append(client.submit(_learn_part, own, pieces, pure=False))
        joined, *others = client.gather(learned)
        assert isinstance(joined, PerceptronFleet)
        return joined.absorb(others)


# Rounds, in tasks.


def _learn_shard(merging: Merging, total: Site, site: Site, shard: Iterable[Batch], number: int) -> Site:
    """Learn a shard from the cavity; its new site, or the old one where there is no cavity or nothing to learn."""
    start = merging.cavity(total, site)
    if start is None:
        return site
    model, learned = copy.deepcopy(start), 0
    try:
        for X, y in _pieces(shard):
            _teach(model, X, y)
            learned += len(y)
    except (TypeError, ValueError) as error:
        kind = ValueError if isinstance(error, ValueError) else TypeError  # not all kinds are made of a text alone
        raise kind(f"shard {number}, after {learned} rows: {error}") from error
    return merging.site(start, model) if learned else site


def _is_estimator(model: Any) -> bool:
    return hasattr(model, "partial_fit")


def _teach(model: Any, X: Any, y: Any) -> None:
    if _is_estimator(model):
        model.partial_fit(X, y)
    else:
        model.learn(X, y)


def _pieces(shard: Iterable[Batch]) -> Iterator[Batch]:
    for X, y in shard:
        for begin in range(0, len(y), _ROWS):
            yield X[begin : begin + _ROWS], y[begin : begin + _ROWS]


def _settled(client: Any, merging: Any, old: tuple[list[Any], Any], new: list[Any]) -> tuple[list[Any], Any]:
    """Replace the sites by the new ones and add them up, or go part of the way if their sum is no Gaussian."""
    total = _summed(client, new)
    share = client.submit(Merging.settled, merging, old[1], total, pure=False).result()
    if share == 1.0:
        return new, total
    sites = [client.submit(Site.toward, a, b, share, pure=False) for a, b in zip(old[0], new, strict=True)]
    return sites, client.submit(Site.toward, old[1], total, share, pure=False)


def _summed(client: Any, sites: list[Any]) -> Any:
    """Add up along a tree, in an order that depends on the number of sites alone."""
    while len(sites) > 1:
        groups = [sites[begin : begin + _FAN_IN] for begin in range(0, len(sites), _FAN_IN)]
        sites = [client.submit(_sum, group, pure=False) for group in groups]
    return sites[0]


def _sum(sites: list[Site]) -> Site:
    return sum(sites[1:], sites[0])


def _first(pair: tuple[Any, Any]) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _rows(site: Site) -> int:
    return site.rows


def _itself(value: Any) -> Any:
    return value


def _by_key(frame: Any, key: str, names: list[str], target: str, n_parts: int) -> list[Any]:
    """Cut a frame into the rows of each part of the keys."""
    keys = as_keys(frame[key].to_numpy(), len(frame))
    X, y, whose = frame[names].to_numpy(np.float64), frame[target].to_numpy(np.float64), parts_of(keys, n_parts)
    given = np.asarray(keys)
    return [(given[own], X[own], y[own]) for own in (np.flatnonzero(whose == part) for part in range(n_parts))]


def _item(parts: list[Any], number: int) -> Any:
    return parts[number]


def _learn_part(fleet: PerceptronFleet, pieces: list[Any]) -> PerceptronFleet:
    fleet = copy.deepcopy(fleet)
    for keys, X, y in pieces:
        if len(y):
            fleet.learn(keys, X, y)
    return fleet


def _test_then_train(merging: Merging, model: Any, shard: Iterable[Batch], number: int, blocks: int) -> Any:
    """Predict and learn one part of a shard: its scores, and the site."""
    start, model = model, copy.deepcopy(model)
    rows = sum(len(y) for _, y in shard)
    begin, end = rows * number // blocks, rows * (number + 1) // blocks
    tally, at = Tally.of(model), 0
    for X, y in _pieces(shard):
        cut = slice(max(begin - at, 0), max(end - at, 0))
        at += len(y)
        part = np.asarray(y[cut])
        if len(part):
            tally.update(model, model.predict_then_learn(X[cut], part), part)
    tally.log_evidence = _evidence(model) - _evidence(start)
    return tally, merging.site(start, model)


def _evidence(model: Any) -> float:
    return float(model.log_evidence_ if _is_estimator(model) else model.log_evidence)


# Where the rows are.


def _shards(client: Any, data: Any, target: Any, features: Any, read: Read | None, keep: bool) -> list[Any]:
    """Futures of shards: each an iterable of batches ``(X, y)``."""
    if isinstance(data, dd.DataFrame):
        if target is None:
            raise ValueError("target must name the target's column of the data frame, got None")
        names = _columns(list(data.columns), target, features)
        frames = client.compute(data[[*names, target]].to_delayed())
        return [client.submit(_of_frame, frame, names, target, pure=False) for frame in frames]
    if isinstance(data, tuple) and len(data) == 2 and all(isinstance(part, da.Array) for part in data):
        return [client.submit(_of_arrays, *pair, pure=False) for pair in _chunks(client, *data)]
    if isinstance(data, (list, tuple)) and data and all(isinstance(path, (str, PathLike)) for path in data):
        paths = [fspath(path) for path in data]
        reader = read or _ParquetReader.of(paths[0], target, features)
        load = list if keep else _itself
        return [client.submit(load, _File(reader, path), pure=False) for path in paths]
    raise TypeError(
        "data must be a Dask data frame, a pair (X, y) of Dask arrays or a list of files, got "
        f"{type(data).__name__}{' (empty)' if isinstance(data, (list, tuple)) and not data else ''}"
    )


def _chunks(client: Any, X: Any, y: Any) -> Iterator[tuple[Any, Any]]:
    if X.ndim != 2 or y.ndim not in (1, 2) or len(X) != len(y):
        raise ValueError(f"X must have shape (n, d) and y (n,), got {X.shape} and {y.shape}")
    X = X.rechunk({1: -1})
    y = y.rechunk({0: X.chunks[0], **({1: -1} if y.ndim == 2 else {})})
    return zip(client.compute(list(X.to_delayed().ravel())), client.compute(list(y.to_delayed().ravel())), strict=True)


def _of_frame(frame: Any, names: list[str], target: str) -> list[Batch]:
    return [(frame[names], frame[target].to_numpy())]


def _of_arrays(X: Any, y: Any) -> list[Batch]:
    return [(X, y)]


@dataclass(frozen=True)
class _File:
    """The batches of a file, read whenever they are asked for."""

    read: Read
    path: str

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.read(self.path))


@dataclass(frozen=True)
class _ParquetReader:
    """Reads the same columns of every file, a block of rows at a time."""

    names: tuple[str, ...]
    target: str

    @classmethod
    def of(cls, path: str, target: str | None, features: Sequence[str] | None) -> "_ParquetReader":
        """Take the columns from the first file."""
        if target is None:
            raise ValueError("target must name the target's column of the files, got None")
        from pyarrow.parquet import read_schema

        return cls(tuple(_columns(read_schema(path).names, target, features)), target)

    def __call__(self, path: str) -> Iterator[Batch]:
        from pyarrow import ArrowInvalid
        from pyarrow.parquet import ParquetFile

        columns = [*self.names, self.target]
        try:
            opened = ParquetFile(path)
        except ArrowInvalid as error:
            raise ValueError(f"{path} is not sound Parquet: {error}") from None
        with opened as file:
            missing = sorted(set(columns) - set(file.schema_arrow.names))
            if missing:
                raise ValueError(f"{path} has no column {', '.join(map(repr, missing))}")
            for batch in file.iter_batches(_READ, columns=columns):
                frame = batch.to_pandas()
                yield frame[list(self.names)], frame[self.target].to_numpy()


@dataclass(frozen=True)
class _Tail:
    """A shard without its first rows."""

    shard: Iterable[Batch]
    skipped: int

    def __iter__(self) -> Iterator[Batch]:
        left = self.skipped
        for X, y in self.shard:
            if len(y) > left:
                yield X[left:], y[left:]
            left = max(left - len(y), 0)


def _columns(names: list[str], target: str | None, features: Sequence[str] | None) -> list[str]:
    if isinstance(features, str):
        raise TypeError(f"features must be a list of names, got the text {features!r}")
    if features is not None and target is not None and target in features:
        raise ValueError(f"{target!r} is the target, and can't be one of the features")
    for name in [*(features or ()), *([] if target is None else [target])]:
        if name not in names:
            raise ValueError(f"there is no column {name!r}; the columns are {', '.join(map(repr, names))}")
    return [name for name in names if name != target] if features is None else list(features)


def _started(client: Any, model: Any, shards: list[Any]) -> tuple[Any, list[Any]]:
    """Give an estimator that has learned nothing its first rows, which the first shards then lack."""
    if not hasattr(model, "__sklearn_is_fitted__") or model.__sklearn_is_fitted__():
        return model, shards
    from sklearn.base import clone, is_classifier

    n = max(_HEAD, model.warm_up if model.standardize else 0)
    options = {}
    if is_classifier(model):
        labels = client.gather([client.submit(_labels, shard, pure=False) for shard in shards])
        options["classes"] = np.unique(np.concatenate(labels))
    started, left, shards = clone(model), n, list(shards)
    for k, shard in enumerate(shards):
        taken = 0
        for X, y in client.submit(_head, shard, left, pure=False).result():
            started.partial_fit(X, y, **options)
            taken += len(y)
        left -= taken
        shards[k] = client.submit(_Tail, shard, taken, pure=False) if taken else shard
        if not left:
            break
    if left == n:
        raise ValueError(_NO_ROWS)
    return started, shards


def _head(shard: Iterable[Batch], n: int) -> list[Batch]:
    """The first rows of a shard, ``n`` or as many as it has."""
    taken: list[Batch] = []
    for X, y in shard:
        if len(y):
            taken.append((X[:n], y[:n]))
            n -= len(taken[-1][1])
        if not n:
            break
    return taken


def _labels(shard: Iterable[Batch]) -> Any:
    found = [np.unique(np.asarray(y)) for _, y in shard]
    return np.unique(np.concatenate(found)) if found else np.empty(0)


def _places(client: Any, shards: list[Any]) -> list[dict[str, Any]]:
    """Where each shard is in memory, as a wish: if that worker is gone, any will do."""
    held = client.who_has(shards)
    return [
        {"workers": list(held[shard.key]), "allow_other_workers": True} if held.get(shard.key) else {}
        for shard in shards
    ]


# What a client needs.


@contextmanager
def _client(given: Any) -> Iterator[Any]:
    if given is None:
        try:
            given = default_client()
        except ValueError:
            with Client(threads_per_worker=1, dashboard_address=":0") as own:
                yield own
            return
    if not isinstance(given, Client):
        raise TypeError(f"client must be a distributed.Client, got {type(given).__name__}")
    yield given


def _await(futures: list[Any], report: Callable[[int], None], before: int) -> None:
    """Wait for all, saying how far it is; the first error is raised, and the rest is not waited for."""
    for done, future in enumerate(as_completed(futures), start=1):
        future.result()
        report(before + done)


@contextmanager
def _progress(progress: Progress | bool, total: int) -> Iterator[Callable[[int], None]]:
    if callable(progress):
        tell = progress
        yield lambda done: tell(done, total)
    elif progress:
        from rich.progress import Progress as Bar

        with Bar(transient=True) as bar:
            task = bar.add_task("learning shards", total=total)
            yield lambda done: bar.update(task, completed=done)
    else:
        yield lambda done: None


# Predicting.


def _gives_prediction(model: Any) -> bool:
    return not _is_estimator(model) and getattr(model, "n_outputs", 1) == 1


def _predicted(rows: Any, model: Any) -> Any:
    if not len(rows):
        return np.empty((0, len(Prediction._fields)))
    return np.column_stack(model.predict(np.asarray(rows)))


def _predicted_frame(frame: Any, model: Any, method: str) -> Any:
    import pandas as pd

    if _gives_prediction(model):
        return pd.DataFrame(_predicted(frame, model), columns=list(Prediction._fields), index=frame.index)
    found = np.asarray(_asked(frame, model, method))
    if found.ndim == 1:
        return pd.DataFrame({method: found}, index=frame.index)
    classes = getattr(model, "classes_", range(found.shape[1]))
    return pd.DataFrame(found, columns=[str(name) for name in classes], index=frame.index)


def _sample(data: Any) -> Any:
    """One row of zeros with the columns of a Dask data frame, to see what a model makes of it."""
    import pandas as pd

    return pd.DataFrame(np.zeros((1, len(data.columns))), columns=data.columns)


def _asked(rows: Any, model: Any, method: str) -> Any:
    if not len(rows):  # which estimators refuse
        one = _sample(rows) if hasattr(rows, "columns") else np.zeros((1, rows.shape[1]))
        return _asked(one, model, method)[:0]
    if _is_estimator(model):
        return getattr(model, method)(rows)
    return model.predict(rows).mean
