"""How fast a large table is learned and evaluated, against merely reading it, and in how much memory.

    python -m benchmarks.tables

Makes 2,000,000 rows of 20 numbers and a target as Parquet, and throws them away afterwards. Reading, learning (`onepass
fit`) and test-then-train (`onepass evaluate`) take turns in one process, with the same reader settings and a warm
cache; what counts is the ratio of their rates. Peak memory is that of the real command, in a process of its own, over
all rows and over a tenth of them.
"""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.timing import race, ratio
from onepass.evaluation.prequential import Trial
from onepass.files.versions import VersionedFile
from onepass.tables.inputs import Inputs, steps
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.training import TrainingRun, train

ROWS, COLUMNS = 2_000_000, 20
ROUNDS = 3
_GROUP = 100_000


def write_table(path: Path, n: int, *, labels: bool) -> None:
    """Random numbers, and a target that a perceptron can learn from them."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=COLUMNS) / np.sqrt(COLUMNS)
    fields = [(f"x{i}", pa.float64()) for i in range(COLUMNS)]
    schema = pa.schema([*fields, ("y", pa.int64() if labels else pa.float64())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, n, _GROUP):
            X = rng.normal(size=(min(_GROUP, n - start), COLUMNS))
            a = X @ weights
            y = (
                (rng.random(len(a)) < 1.0 / (1.0 + np.exp(-a))).astype(np.int64)
                if labels
                else a + rng.normal(size=len(a))
            )
            writer.write_table(pa.table([*X.T, y], schema=schema))


def read(file: Path) -> int:
    """Merely read: every batch as one array of its inputs and one of its targets."""
    rows = 0
    source = pq.ParquetFile(file, buffer_size=2**20, pre_buffer=False)
    for batch in source.iter_batches(8192, use_threads=False):
        columns = [column.to_numpy(zero_copy_only=False) for column in batch.columns]
        X = np.empty((len(columns[-1]), COLUMNS))
        for i in range(COLUMNS):
            X[:, i] = columns[i]
        rows += len(X)
    return rows


def learn(file: Path) -> int:
    """What `onepass fit` does between its first line and its last."""
    inputs = Inputs((str(file),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("y"), rereadable=True)
    train(TrainingRun(model, VersionedFile(file.with_suffix(".onepass")), inputs, sources))
    return model.n_rows


def evaluate(file: Path) -> int:
    """What `onepass evaluate` does between its first line and its last."""
    inputs = Inputs((str(file),))
    sources = inputs.sources()
    model, _ = infer_model(sources, SchemaOptions("y"), rereadable=True)
    trial = Trial(model)
    for step in steps(model, inputs, sources):
        trial.add(step.rows)
    trial.scores()
    return trial.rows


@dataclass(frozen=True)
class Figure:
    """A number and what was asked of it."""

    name: str
    value: str
    target: str
    reached: bool

    def line(self) -> str:
        """One line of the table."""
        return f"{self.name:62s} {self.value:>14s}   {self.target:18s} {'reached' if self.reached else 'MISSED'}"


def speed(folder: Path) -> Iterator[Figure]:
    """Rates against that of reading."""
    for labels in (True, False):
        what = "labels" if labels else "numbers"
        file = folder / f"{what}.parquet"
        write_table(file, ROWS, labels=labels)
        competitors: dict[str, Callable[[], object]] = {
            name: partial(run, file) for name, run in (("read", read), ("learn", learn), ("evaluate", evaluate))
        }
        seconds = race(competitors, ROUNDS)
        for name in competitors:
            print(f"{what:8s} {name:9s} {1e6 * median(seconds[name]) / ROWS:8.3f} us a row", flush=True)
        for name, limit in (("learn", 1 / 3), ("evaluate", 1 / 5)):
            value = ratio(seconds, "read", name)
            yield Figure(
                f"{what}: {name}, rate over that of reading", f"{value:.3f}", f"at least {limit:.3f}", value >= limit
            )


def memory(folder: Path) -> Iterator[Figure]:
    """Peak memory of the real command."""
    small = folder / "small.parquet"
    write_table(small, ROWS // 10, labels=True)
    for command in ("fit", "evaluate"):
        peaks = [peak(command, file) for file in (folder / "labels.parquet", small)]
        large, little = (value / 2**20 for value in peaks)
        yield Figure(f"{command}: peak memory over {ROWS:,} rows", f"{large:.0f} MB", "below 600 MB", large < 600)
        gap = abs(large / little - 1.0)
        name = f"{command}: the same over {ROWS // 10:,} rows ({little:.0f} MB)"
        yield Figure(name, f"{gap:.1%} apart", "at most 10 %", gap <= 0.1)


def peak(command: str, file: Path) -> float:
    """Bytes that a command held at most."""
    options = ["--model", str(file.with_suffix(".onepass"))] if command == "fit" else []
    code = "from onepass.cli.main import main; main()"
    run = [sys.executable, "-c", code, command, str(file), "--target", "y", "--quiet", *options]
    watched = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    done = subprocess.run([sys.executable, "-c", watched, *run], capture_output=True, text=True, check=True)
    return 1024.0 * int(done.stdout)


def main() -> None:
    """Measure, print, and fail if something was missed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        figures = [*speed(folder), *memory(folder)]
    for figure in figures:
        print(figure.line())
    sys.exit(0 if all(figure.reached for figure in figures) else 1)


if __name__ == "__main__":
    main()
