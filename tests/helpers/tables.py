"""Tables for the tests of files and commands, always the same."""

import csv
import gzip
import io
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from onepass.tables.readers.batches import Malformed
from onepass.tables.readers.registry import open_source

Row = dict[str, Any]


def trips(n: int, seed: int = 0) -> list[Row]:
    """Rides with a price that a line can explain: numbers, categories, dates, true or false, missing values."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        km, car, vip = float(rng.gamma(2.0, 4.0)), ("bike", "sedan", "van")[rng.integers(3)], bool(rng.random() < 0.2)
        extra = {"bike": -2.0, "sedan": 0.0, "van": 5.0}[car] + 4.0 * vip
        rows.append(
            {
                "id": i,
                "km": round(km, 3),
                "car": car,
                "start": f"2024-{rng.integers(1, 13):02d}-{rng.integers(1, 28):02d}T{rng.integers(0, 24):02d}:30:00",
                "vip": vip,
                "town": f"town {rng.integers(0, 80)}",
                "wait": None if rng.random() < 0.1 else round(float(rng.exponential(5.0)), 2),
                "price": round(3.0 + 1.8 * km + extra + float(rng.normal(0.0, 2.0)), 2),
            }
        )
    return rows


def clicks(n: int, seed: int = 0) -> list[Row]:
    """Visitors who click or not, and on what."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        age, device = float(rng.normal(40.0, 12.0)), ("desk", "phone")[rng.integers(2)]
        odds = -0.5 + 0.08 * (age - 40.0) + (1.0 if device == "phone" else -1.0)
        clicked = bool(rng.random() < 1.0 / (1.0 + np.exp(-odds)))
        kind = ("none", "ad", "news")[int(clicked) * int(rng.integers(1, 3))]
        rows.append({"age": round(age, 1), "device": device, "clicked": int(clicked), "kind": kind})
    return rows


def write_csv(path: Path, rows: list[Row]) -> Path:
    """Write rows as CSV, zipped if the name says so."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], lineterminator="\n")
    writer.writeheader()
    writer.writerows(
        {name: str(value).lower() if isinstance(value, bool) else value for name, value in row.items()} for row in rows
    )
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def write_jsonl(path: Path, rows: list[Row]) -> Path:
    """Write rows as JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def write_parquet(path: Path, rows: list[Row], group: int = 1000) -> Path:
    """Write rows as Parquet in groups of rows."""
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=group)
    return path


def read_rows(file: Path, skip: int = 0, types: dict[str, Any] | None = None) -> list[Row]:
    """The rows of a file, as its reader gives them."""
    return [row for batch in open_source(str(file)).batches(types, skip) for row in batch.record_batch.to_pylist()]


def malformed(file: Path, skip: int = 0) -> list[Malformed]:
    """The malformed records of a file."""
    return [bad for batch in open_source(str(file)).batches(None, skip) for bad in batch.malformed]


def messages(n: int) -> list[dict[str, Any]]:
    """Messages of two kinds that share most of their words, and a number that depends on the kind."""
    draw = random.Random(1)
    common = [f"word{i}" for i in range(300)]
    own = {kind: [f"{kind}{i}" for i in range(60)] for kind in ("ham", "spam")}
    rows = []
    for _ in range(n):
        kind = draw.choices(("ham", "spam"), (4, 1))[0]
        words = draw.choices(common, k=8) + draw.choices(own[kind] + own["ham"], k=3)
        draw.shuffle(words)
        score = 50.0 + 20.0 * (kind == "spam") + draw.gauss(0.0, 2.0)
        rows.append(
            {"sms": " ".join(words).capitalize() + "!", "hour": draw.randrange(24), "kind": kind, "score": score}
        )
    return rows
