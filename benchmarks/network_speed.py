"""How fast networks learn: full mode against the bare arithmetic in it, batches, threads, and the wide mode.

The diagonal mode is raced against pytagi where that can be imported; it is no dependency, because besides its wheel it
needs the libraries of MPI and NCCL on the machine.
"""

from collections.abc import Callable, Iterator
from statistics import median

import numpy as np
from scipy.linalg.blas import dgemv, dger, dsymv, dsyr

from benchmarks.timing import Measurement, race, ratio
from onepass import BayesianCommittee, BayesianNetwork

__all__ = ["networks"]

_RNG = np.random.default_rng(0)


def networks() -> Iterator[Measurement]:
    """Fifty ReLU units in full mode, row by row, in batches and in threads; diagonal mode, up to a million weights."""
    for d in (8, 13):
        yield _full(d)
    yield _together()
    yield _side_by_side()
    yield from _kronecker()
    yield from _diagonal()
    yield _steady()


def _full(d: int) -> Measurement:
    n = 1000
    X, y = _RNG.normal(size=(n, d)), _RNG.normal(size=n)
    network = BayesianNetwork(d, covariance="full")
    size = len(network.mean)
    cov, slope = np.asfortranarray(np.eye(size)), _RNG.normal(size=size)

    def bare() -> None:
        for _ in range(n):
            gain = dsymv(1.0, cov, slope, lower=1)
            dsyr(-1e-12, gain, a=cov, lower=1, overwrite_a=1)

    seconds = race({"ours": lambda: network.learn(X, y), "bare": bare}, 7)
    value = ratio(seconds, "ours", "bare")
    times = median(seconds["ours"]) / n, median(seconds["bare"]) / n
    return Measurement(f"network, {size} weights: against dsymv + dsyr", *times, value, "at most 3", value <= 3.0)


def _together() -> Measurement:
    """Rows in batches of 32 over rows one by one."""
    n = 1024
    X, y = _RNG.normal(size=(n, 8)), _RNG.normal(size=n)
    rows, batches = (BayesianNetwork(8, covariance="full") for _ in range(2))
    seconds = race({"ours": lambda: batches.learn(X, y, batch=32), "rows": lambda: rows.learn(X, y)}, 7)
    value = ratio(seconds, "ours", "rows")
    times = median(seconds["ours"]) / n, median(seconds["rows"]) / n
    return Measurement("network, 501 weights: batches of 32 over rows", *times, value, "at most 0.8", value <= 0.8)


def _side_by_side() -> Measurement:
    """Four members in two threads over one: half the time where two cores are free."""
    n = 500
    X, y = _RNG.normal(size=(n, 8)), _RNG.normal(size=n)
    alone, threaded = (BayesianCommittee(8, members=4, weighting="uniform", workers=k) for k in (1, 2))
    seconds = race({"ours": lambda: threaded.learn(X, y), "alone": lambda: alone.learn(X, y)}, 7)
    value = ratio(seconds, "ours", "alone")
    times = median(seconds["ours"]) / n, median(seconds["alone"]) / n
    return Measurement("committee of 4: two threads over one", *times, value, "at most 0.7", value <= 0.7)


def _kronecker() -> Iterator[Measurement]:
    """A hidden layer of 100 units over 200 inputs: the bare products with its factors that a row needs.

    A row also needs two products with the weights themselves, which a second figure has, and the moments of 100 units,
    about a fifth of our time. Roots in the place of the factors, which stay positive definite, cost the rest.
    """
    n, d, units = 500, 200, 100
    X, y = _RNG.normal(size=(n, d)), _RNG.normal(size=n)
    network = BayesianNetwork(d, (units,), covariance="kronecker")
    factors = [np.asfortranarray(np.eye(size)) for size in (d + 1, units, units + 1)]
    vectors = [_RNG.normal(size=len(factor)) for factor in factors]

    def bare() -> None:
        for _ in range(n):
            for factor, vector in zip(factors, vectors, strict=True):
                gain = dsymv(1.0, factor, vector, lower=1)
                dsyr(-1e-12, gain, a=factor, lower=1, overwrite_a=1)

    weights = np.asfortranarray(_RNG.normal(size=(units, d + 1)))

    def with_weights() -> None:
        bare()
        for _ in range(n):
            dger(1e-12, dgemv(1.0, weights, vectors[0]), vectors[0], a=weights, overwrite_a=1)

    seconds = race({"ours": lambda: network.learn(X, y), "factors": bare, "weights": with_weights}, 7)
    for bound, products in (("factors", "dsymv + dsyr"), ("weights", "with dgemv + dger")):
        value = ratio(seconds, "ours", bound)
        times = median(seconds["ours"]) / n, median(seconds[bound]) / n
        yield Measurement(f"network, 200-100-1, Kronecker: {products}", *times, value, "at most 1.5", value <= 1.5)


def _diagonal() -> Iterator[Measurement]:
    """As many rows and inputs as kin8nm has; pytagi one row at a time, as we learn, and ten at a time."""
    n, d = 7373, 8
    X, y = _RNG.normal(size=(n, d)), _RNG.normal(size=n)
    network = BayesianNetwork(d, covariance="diagonal")
    try:
        competitors = {batch: _pytagi(X, y, batch) for batch in (1, 10)}
    except ImportError as error:
        print(f"network, diagonal: pytagi can't be imported ({error}); its authors' code took 0.15 s a pass elsewhere")
        return
    for batch, learn in competitors.items():
        seconds = race({"ours": lambda: network.learn(X, y), "pytagi": learn}, 7)
        value = ratio(seconds, "ours", "pytagi")
        times = median(seconds["ours"]) / n, median(seconds["pytagi"]) / n
        name = f"network, 501 weights, diagonal: against pytagi, batch {batch}"
        yield Measurement(name, *times, value, "at most 2", value <= 2.0)


def _pytagi(X: np.ndarray, y: np.ndarray, batch: int) -> Callable[[], None]:
    from pytagi.nn import Linear, MixtureReLU, OutputUpdater, Sequential

    net = Sequential(Linear(X.shape[1], 50), MixtureReLU(), Linear(50, 1))
    net.set_threads(1)
    updater = OutputUpdater(net.device)
    rows, targets, noise = X.astype(np.float32), y.astype(np.float32), np.full(batch, 0.1, np.float32)

    def learn() -> None:
        for start in range(0, len(rows) - batch + 1, batch):
            net(rows[start : start + batch].ravel())
            updater.update(
                output_states=net.output_z_buffer,
                mu_obs=targets[start : start + batch],
                var_obs=noise,
                delta_states=net.input_delta_z_buffer,
            )
            net.backward()
            net.step()

    return learn


def _steady() -> Measurement:
    """The rate of a million weights at the end of a stream over that at its beginning."""
    n = 100
    X, y = _RNG.normal(size=(n, 1000)), _RNG.normal(size=n)
    young, old = (BayesianNetwork(1000, (999,), covariance="diagonal") for _ in range(2))
    for _ in range(20):
        old.learn(X, y)
    seconds = race({"ours": lambda: old.learn(X, y), "young": lambda: young.learn(X, y)}, 5)
    value = ratio(seconds, "ours", "young")
    times = median(seconds["ours"]) / n, median(seconds["young"]) / n
    return Measurement("network, 1,000,999 weights: after 2,000 rows", *times, value, "at most 1.2", value <= 1.2)
