"""Columns of text against logistic regression on the same words: sentences of documentation, and where they come from.

No corpus comes with Python, but documentation does: every sentence in the docstrings of some installed packages is a
row, and its package the class. The defaults of text columns were chosen on other packages (scikit-learn, statsmodels,
SciPy, pandas and NumPy). Four fifths of the rows are learned once, in their order, and the rest predicted; logistic
regression sees the words and pairs of `HashingVectorizer`, in as many features, with the best of four strengths of
regularisation, chosen by cross-validation on the rows it learns.

    python -m benchmarks.text [TABLE.csv TARGET]

With the name of a table and of its target, e.g. of messages and whether they are spam, that table instead. All its text
must be in one column, the others are left out.
"""

import ast
import csv
import random
import re
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.metrics import accuracy_score, log_loss

from onepass.evaluation.prequential import OURS, Trial
from onepass.tables.columns.text import Text
from onepass.tables.inputs import Inputs, steps
from onepass.tables.schema import SchemaOptions, infer_model

__all__ = ["corpus", "main", "measure"]

CORPORA = {
    "two packages": {"matplotlib": 2500, "dask": 2500},
    "one of them rare": {"matplotlib": 4000, "river": 600},
    "three packages": {"matplotlib": 1500, "dask": 1500, "river": 1500},
}
Corpus = list[tuple[str, str]]  # text and class


def corpus(sizes: dict[str, int]) -> Corpus:
    """So many sentences of each package, in random order but always the same."""
    rows = [(text, package) for package, size in sizes.items() for text in _sentences(package, size)]
    random.Random(0).shuffle(rows)
    return rows


def _sentences(package: str, most: int) -> list[str]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package} is not installed; 'make setup' installs all that benchmarks need")
    found = dict.fromkeys(text for file in sorted(Path(spec.origin).parent.rglob("*.py")) for text in _in_file(file))
    texts = sorted(found)
    random.Random(1).shuffle(texts)
    return texts[:most]


def _in_file(file: Path) -> Iterator[str]:
    if "tests" in file.parts:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and (text := ast.get_docstring(node)):
            for part in re.split(r"(?<=[.!?])\s+|\n\s*\n", text):
                words = part.split()
                if 3 <= len(words) <= 40:
                    yield " ".join(words)


def measure(rows: Corpus) -> dict[str, dict[str, float]]:
    """Accuracy, log-loss and rows per second of both, and our scores of rows predicted before they were learned."""
    n = len(rows) * 4 // 5
    labels = sorted({label for _, label in rows})
    y = np.array([label for _, label in rows])
    model, trial, seconds = _learned(rows[:n])
    (text,) = model.encoding.texts
    ours = model.estimator.predict_proba(text.rows(pa.array([value for value, _ in rows[n:]])))
    scores = trial.scores()[OURS]
    found = {"onepass": _scores(y[n:], ours, labels) | {"rows/s": n / seconds}}
    start = perf_counter()
    theirs = _logistic(rows[:n], rows[n:], text)
    found["LogisticRegressionCV"] = _scores(y[n:], theirs, labels) | {"rows/s": n / (perf_counter() - start)}
    found["onepass, prequential"] = {"accuracy": scores["accuracy"], "log-loss": scores["log_loss"]}
    return found


def _learned(rows: Corpus) -> tuple[Any, Trial, float]:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "rows.csv"
        with file.open("w", newline="", encoding="utf-8") as opened:
            csv.writer(opened).writerows([("text", "label"), *rows])
        start = perf_counter()
        inputs = Inputs((str(file),))
        sources = inputs.sources()
        wanted = SchemaOptions("label", task="classification", kinds={"text": "text"})
        model, _ = infer_model(sources, wanted, rereadable=True)
        trial = Trial(model)
        for step in steps(model, inputs, sources):
            trial.add(step.rows)
    return model, trial, perf_counter() - start


def _logistic(train: Corpus, test: Corpus, text: Text) -> Any:
    words = HashingVectorizer(
        n_features=text.buckets, ngram_range=(1, 2), alternate_sign=False, token_pattern=r"(?u)\b\w+\b"
    )
    X, Z = (words.transform([value for value, _ in part]) for part in (train, test))
    model = LogisticRegressionCV(Cs=[1.0, 10.0, 100.0, 1000.0], cv=3, scoring="neg_log_loss", max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        return model.fit(X, [label for _, label in train]).predict_proba(Z)


def _scores(y: Any, probabilities: Any, labels: list[str]) -> dict[str, float]:
    best = np.array(labels)[probabilities.argmax(axis=1)]
    return {"accuracy": float(accuracy_score(y, best)), "log-loss": float(log_loss(y, probabilities, labels=labels))}


def _table(file: str, target: str) -> Corpus:
    """The longest text of every row, and its target."""
    with open(file, newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    columns = [name for name in rows[0] if name != target]
    longest = max(columns, key=lambda name: sum(len(row[name] or "") for row in rows))
    return [(row[longest] or "", row[target]) for row in rows]


def main() -> None:
    given = sys.argv[1:]
    chosen = {given[0]: _table(*given)} if given else {name: corpus(sizes) for name, sizes in CORPORA.items()}
    for name, rows in chosen.items():
        print(f"{name}: {len(rows):,} rows")
        for model, found in measure(rows).items():
            print(f"  {model:22}", "  ".join(f"{key} {value:,.4g}" for key, value in found.items()), flush=True)


if __name__ == "__main__":
    main()
