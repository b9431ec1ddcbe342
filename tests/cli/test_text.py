"""Text in tables, from the user's side."""

from pathlib import Path

from onepass.tables.inputs import Inputs
from onepass.tables.schema import SchemaOptions, infer_model
from onepass.tables.settings import Settings
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


def test_a_network_that_is_asked_for_has_room_for_fewer_words(run: Run, tmp_path: Path) -> None:
    table = write_csv(tmp_path / "sms.csv", messages(100))
    given = ("--target", "score", "--ignore", "kind", "--model-kind", "network", "--text-buckets", "32")
    assert "diagonal" not in run("fit", table, *given, "--model", tmp_path / "m").out.split("ms per row")[0]
    options = SchemaOptions("score", ignore=("kind",), settings=Settings("network"))
    model, _ = infer_model(Inputs((str(table),)).sources(), options, rereadable=True)
    assert [text.buckets for text in model.encoding.texts] == [1024]
    assert model.estimator.covariance == "auto"


def test_a_model_per_key_names_the_text_that_it_can_not_take(run: Run, tmp_path: Path) -> None:
    rows = [{**row, "store": f"s{i % 3}"} for i, row in enumerate(messages(200))]
    table = write_csv(tmp_path / "sms.csv", rows)
    given = ("--target", "score", "--ignore", "kind", "--by", "store", "--model", tmp_path / "m")
    done = run("fit", table, *given)
    assert done.code == 1
    assert "--by: sms is a text, and a model per key can have at most 200 features" in done.err
    assert "--ignore sms" in done.err
    assert "covariance" not in done.err
    assert "--by: sms is a text" in run("fit", table, *given, "--text-buckets", "32").err
