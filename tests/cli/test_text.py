"""Text in tables, from the user's side."""

from pathlib import Path

from tests.cli.conftest import Run
from tests.helpers.tables import messages, write_csv


def test_the_command_learns_text_and_names_words(run: Run, tmp_path: Path) -> None:
    table, model = write_csv(tmp_path / "sms.csv", messages(400)), tmp_path / "sms.onepass"
    done = run("fit", table, "--target", "kind", "--ignore", "score", "--model", model)
    assert done.code == 0
    assert "text, its words and pairs of words hashed into 65,536 features" in done.out
    assert "diagonal: no correlations between weights are kept; words have few" in done.out
    assert "weight sms: 'spam" in run("show", model).out
    assert run("predict", model, table, "--out", tmp_path / "out.csv").code == 0
    done = run("fit", table, "--target", "kind", "--as", "sms=hashed", "--model", model)
    assert "sms:    many categories, hashed into 64" in done.out.replace("column ", "")
    done = run("evaluate", table, "--target", "kind", "--ignore", "score,hour", "--text-buckets", "512", "--compare")
    assert done.code == 0
    assert "hashed into 512 features" in done.out
    assert "River" in done.out
