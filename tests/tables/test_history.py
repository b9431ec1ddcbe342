from pathlib import Path

import numpy as np
import pytest

import onepass
from onepass.files.checkpoint import save_with_parameters
from onepass.tables import history as module
from onepass.tables.history import LearnedFile, LearnedRun, TrainingHistory
from onepass.tables.model import TabularModel
from onepass.tables.readers.content import HEAD, ContentReader, content_of, head_digest, head_digests
from tests.helpers.savable_models import table


@pytest.fixture(scope="module")
def model() -> TabularModel:
    X = np.random.default_rng(0).normal(size=(40, 3))
    return table(X, X[:, 0])


def entry(number: int) -> LearnedFile:
    return LearnedFile(f"part-{number:05d}.csv", number, "0" * 32, f"{number:064d}", 1000)


def test_ten_thousand_files_fit_into_a_model_and_come_back(model: TabularModel, tmp_path: Path) -> None:
    onepass.save(model, tmp_path / "m")
    size = (tmp_path / "m").stat().st_size
    run = LearnedRun("2026-01-31T20:00:00Z", 10**7, 3, 1, tuple(map(entry, range(10_000))))
    model.history = TrainingHistory().with_run(run)
    onepass.save(model, tmp_path / "m")
    assert onepass.load(tmp_path / "m").history == model.history
    assert (tmp_path / "m").stat().st_size - size < 2_500_000


def test_the_oldest_of_very_many_files_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 5)
    history = TrainingHistory()
    for number in range(4):
        history = history.with_run(LearnedRun("", 1, 0, 1, (entry(2 * number), entry(2 * number + 1))))
    assert [file.size for file in history.files] == [7, 6, 5, 4]
    assert history.forgotten == 4
    assert history.with_run(LearnedRun("", 1, 0, 1, tuple(map(entry, range(9))))).forgotten == 8  # the last run stays


@pytest.mark.parametrize(
    "state",
    [
        {"runs": [{}], "forgotten": 0},
        {"runs": [{"when": 1, "rows": 1, "rejected": 0, "passes": 1, "files": []}], "forgotten": 0},
        {"runs": [{"when": "", "rows": -1, "rejected": 0, "passes": 1, "files": []}], "forgotten": 0},
        {"runs": [{"when": "", "rows": 1, "rejected": 0, "passes": 1, "files": [["a", 1, 2, "", 1]]}], "forgotten": 0},
        {"runs": [{"when": "", "rows": 1, "rejected": 0, "passes": 1, "files": [["a"]]}], "forgotten": 0},
        {"runs": [], "forgotten": "many"},
        7,
    ],
)
def test_a_history_that_is_none_is_refused(model: TabularModel, tmp_path: Path, state: object) -> None:
    save_with_parameters(model, tmp_path / "m", {"history": state})
    with pytest.raises(onepass.CheckpointError):
        onepass.load(tmp_path / "m")


def test_a_digest_is_the_same_in_one_step_or_many(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_bytes(bytes(range(256)) * 10_000)
    reader = ContentReader(str(file))
    sizes = [1, 1000, HEAD - 1, HEAD, HEAD + 1, 2_000_000, 9_999_999]
    heads = head_digests(str(file), sizes)
    for size in sizes:
        content = reader.advance(size)
        assert content == content_of(str(file), size)
        assert content.size == min(size, 2_560_000)
        assert content.head == heads[size] == head_digest(str(file), size)
    reader.close()
