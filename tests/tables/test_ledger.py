from pathlib import Path

import pytest

import onepass
from onepass.files.checkpoint import load_with_parameters, save_with_parameters
from onepass.tables import ledger as module
from onepass.tables.ledger import LearnedFile, LearnedRun, Ledger
from onepass.tables.readers.content import HEAD, ContentReader, content_of, head_digest, head_digests
from onepass.tables.readers.registry import open_source
from onepass.tables.selection import KnownContentError, select
from tests.helpers.tables import trips, write_csv

FIXTURE = Path(__file__).parent.parent / "fixtures" / "table-v1.safetensors"


def entry(number: int) -> LearnedFile:
    return LearnedFile(f"part-{number:05d}.csv", number, "0" * 32, f"{number:064d}", 1000)


def test_ten_thousand_files_fit_into_a_model_and_come_back(tmp_path: Path) -> None:
    model = onepass.load(FIXTURE)
    run = LearnedRun("2026-01-31T20:00:00Z", 10**7, 3, 1, tuple(map(entry, range(10_000))))
    model.ledger = Ledger().with_run(run)
    onepass.save(model, tmp_path / "m")
    assert onepass.load(tmp_path / "m").ledger == model.ledger
    assert (tmp_path / "m").stat().st_size - FIXTURE.stat().st_size < 2_500_000


def test_the_oldest_of_very_many_files_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_FILES", 5)
    ledger = Ledger()
    for number in range(4):
        ledger = ledger.with_run(LearnedRun("", 1, 0, 1, (entry(2 * number), entry(2 * number + 1))))
    assert [file.size for file in ledger.files] == [7, 6, 5, 4]
    assert ledger.forgotten == 4
    assert ledger.with_run(LearnedRun("", 1, 0, 1, tuple(map(entry, range(9))))).forgotten == 8  # the last run stays


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
def test_a_ledger_that_is_none_is_refused(tmp_path: Path, state: object) -> None:
    save_with_parameters(onepass.load(FIXTURE), tmp_path / "m", {"ledger": state})
    with pytest.raises(onepass.CheckpointError):
        onepass.load(tmp_path / "m")


def test_the_last_run_of_an_earlier_version_is_known_by_its_beginning(tmp_path: Path) -> None:
    file = write_csv(tmp_path / "a.csv", trips(300))
    known = {"name": "a.csv", "size": file.stat().st_size, "digest": head_digest(str(file), HEAD)}
    model, parameters = load_with_parameters(FIXTURE)
    del parameters["ledger"]  # which they had not
    assert type(model).from_state(parameters, model.export_state()[1]).ledger == Ledger()
    old = {**parameters, "last_run": {"files": [known], "passes": 1, "delimiter": None}}
    found = type(model).from_state(old, model.export_state()[1])
    (run,) = found.ledger.runs
    assert [(one.name, one.size, one.digest, one.rows) for one in run.files] == [("a.csv", known["size"], None, None)]

    def start() -> int | None:
        return select([str(file)], [open_source(str(file))], found.ledger)[0].start

    assert start() is None
    write_csv(file, trips(301))
    with pytest.raises(KnownContentError, match="can't be learned from there on"):  # nobody counted its rows
        start()
    write_csv(file, trips(301, seed=1))
    assert start() == 0


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
