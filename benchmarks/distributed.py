"""Two local workers against one process, both doing the same rounds over the same rows; and a model of what it costs.

    python -m benchmarks.distributed [rows]          # 20,000,000 by default
    python -m benchmarks.distributed model [rows]    # the cost model, checked against one and two workers

Rows are labels with 20 features, kept as float32 (a shard's numbers are converted a block at a time) and generated
where they are learned: in the workers' memory, and again, under the same seeds, in this process. A row counts once a
round. Both take turns, warm; what counts is the ratio. Then the same from Parquet files, the reading included.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import dask.array as da
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from dask.delayed import delayed
from distributed import Client, LocalCluster, wait

from benchmarks.timing import Measurement, race, ratio
from onepass import BayesianPerceptron, distributed
from onepass.merging import Merging, Rounds

FEATURES, SHARDS, ROUNDS, TURNS = 20, 16, 2, 3
NAMES = [f"x{j}" for j in range(FEATURES)]

Shard = tuple[Any, Any]


def inputs(number: int, rows: int) -> Any:
    rng = np.random.default_rng([7, number])
    return rng.standard_normal((rows, FEATURES), dtype=np.float32)


def labels(X: Any, number: int) -> Any:
    rng = np.random.default_rng([8, number])
    weights = np.linspace(-1.0, 1.0, FEATURES, dtype=np.float32)
    return (X @ weights + rng.logistic(size=len(X)) > 0).astype(np.float32)


def in_the_workers(client: Any, rows: int, shards: int = SHARDS) -> tuple[Any, Any]:
    """Dask arrays, a chunk a shard, made and held by the workers."""
    each = rows // shards
    parts = [delayed(inputs)(number, each) for number in range(shards)]
    X = da.concatenate([da.from_delayed(part, (each, FEATURES), dtype=np.float32) for part in parts])
    targets = [delayed(labels)(part, number) for number, part in enumerate(parts)]
    y = da.concatenate([da.from_delayed(target, (each,), dtype=np.float32) for target in targets])
    X, y = client.persist([X, y])
    wait([X, y])
    return X, y


def by_one_process(shards: Callable[[], list[Shard]]) -> BayesianPerceptron:
    """The same rounds, plainly."""
    held = shards()
    steps = Rounds(BayesianPerceptron(FEATURES), len(held))
    for _ in range(ROUNDS):
        steps.take([start and taught(start, *shard) for start, shard in zip(steps.starts(), held, strict=True)])
    model: BayesianPerceptron = steps.merged()
    return model


def taught(model: BayesianPerceptron, X: Any, y: Any) -> BayesianPerceptron:
    for begin in range(0, len(y), 8192):  # as a worker does
        model.learn(X[begin : begin + 8192], y[begin : begin + 8192])
    return model


def cluster(workers: int) -> Any:
    return LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", memory_limit=0)


def measurement(name: str, seconds: dict[str, list[float]], rows: int) -> Measurement:
    value = ratio(seconds, "one process", "two workers")
    times = [median(seconds[who]) / rows / ROUNDS for who in ("two workers", "one process")]
    return Measurement(name, times[0], times[1], value, "at least 1.6", value >= 1.6)


def compare(rows: int) -> None:
    held: list[Shard] = []
    for number in range(SHARDS):
        X = inputs(number, rows // SHARDS)
        held.append((X, labels(X, number)))
    print(f"{'':58s} {'two us':>10s} {'one us':>10s} {'ratio':>8s}")
    with cluster(2) as local, Client(local) as client, tempfile.TemporaryDirectory() as folder:
        seconds = in_memory(client, held, rows)
        print(measurement(f"{rows:,} rows in memory, {ROUNDS} rounds: rows/s", seconds, rows).line(), flush=True)
        paths = [write(Path(folder), number, shard) for number, shard in enumerate(held)]
        held.clear()
        print(measurement("the same, read from Parquet first", from_files(client, paths), rows).line(), flush=True)


def in_memory(client: Any, held: list[Shard], rows: int) -> dict[str, list[float]]:
    data, prior = in_the_workers(client, rows), BayesianPerceptron(FEATURES)
    models: dict[str, Any] = {}
    seconds = race(
        {
            "one process": lambda: models.update(one=by_one_process(lambda: held)),
            "two workers": lambda: models.update(two=distributed.fit(prior, data, client=client, rounds=ROUNDS)),
        },
        TURNS,
    )
    assert np.allclose(models["one"].mean, models["two"].mean, rtol=1e-9), "both must learn the same"
    return seconds


def from_files(client: Any, paths: list[str]) -> dict[str, list[float]]:
    prior = BayesianPerceptron(FEATURES)
    return race(
        {
            "one process": lambda: by_one_process(lambda: [joined(read(path)) for path in paths]),
            "two workers": lambda: distributed.fit(prior, paths, client=client, rounds=ROUNDS, read=read),
        },
        TURNS,
    )


def write(folder: Path, number: int, shard: Shard) -> str:
    path = str(folder / f"{number}.parquet")
    columns = [np.ascontiguousarray(column) for column in shard[0].T]
    pq.write_table(pa.table(dict(zip([*NAMES, "y"], [*columns, shard[1]], strict=True))), path, compression="none")
    return path


def read(path: str) -> Iterator[Shard]:
    with pq.ParquetFile(path) as file:
        for part in file.iter_batches(65_536):
            columns = [part.column(j).to_numpy() for j in range(FEATURES + 1)]
            yield np.stack(columns[:-1], axis=1), columns[-1]


def joined(batches: Iterator[Shard]) -> Shard:
    X, y = zip(*batches, strict=True)
    return np.concatenate(X), np.concatenate(y)


# The cost model.


def seconds_a_round(client: Any, data: tuple[Any, Any]) -> float:
    prior = BayesianPerceptron(FEATURES)

    def run(rounds: int) -> float:
        start = time.perf_counter()
        distributed.fit(prior, data, client=client, rounds=rounds)
        return time.perf_counter() - start

    return (run(3) - run(1)) / 2  # the difference leaves out what a call costs once


def cost_model(rows: int) -> None:
    with cluster(1) as single, cluster(2) as double, Client(single) as alone, Client(double) as both:
        runs = {
            "few": (alone, in_the_workers(alone, 8, 8)),
            "many": (alone, in_the_workers(alone, 72, 72)),
            "half": (alone, in_the_workers(alone, rows // 2)),
            "all": (alone, in_the_workers(alone, rows)),
            "two": (both, in_the_workers(both, rows)),
        }
        for run in runs.values():
            seconds_a_round(*run)  # warm
        turns = [{name: seconds_a_round(*run) for name, run in runs.items()} for _ in range(TURNS)]
    measured = {name: median(turn[name] for turn in turns) for name in runs}
    shard = (measured["many"] - measured["few"]) / 64
    fixed = max(measured["few"] - 8 * shard, 0.0)
    row = (measured["all"] - fixed - SHARDS * shard) / rows
    prior = BayesianPerceptron(FEATURES)
    size = Merging(prior).nothing().nbytes

    def predicted(n: int, shards: int, workers: int) -> float:
        return fixed + shards * shard + n * row / workers

    print(
        f"a row {1e6 * row:.3f} us; a shard {1e3 * shard:.2f} ms; a round {1e3 * fixed:.0f} ms; a site {size:,} bytes"
    )
    print("\n| run | predicted, s a round | measured |\n|---|---|---|")
    print(f"| {rows // 2:,} rows, 1 worker | {predicted(rows // 2, SHARDS, 1):.2f} | {measured['half']:.2f} |")
    print(f"| {rows:,} rows, 2 workers | {predicted(rows, SHARDS, 2):.2f} | {measured['two']:.2f} |")
    print("\n| workers = shards | s a round, 10^9 rows | of linear | moved a round |\n|---|---|---|---|")
    for workers in (1, 4, 16, 64, 256, 1024, 4096):
        time_ = predicted(10**9, workers, workers)
        moved = (workers * 8 / 7 + workers) * size
        print(f"| {workers:,} | {time_:,.1f} | {10**9 * row / workers / time_:.0%} | {moved / 1e6:,.2f} MB |")


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["model"]:
        cost_model(int(words[1]) if len(words) > 1 else 4_000_000)
    else:
        compare(int(words[0]) if words else 20_000_000)


if __name__ == "__main__":
    main()
