"""A target that fits no task: what is proposed instead has to be possible."""

from pathlib import Path

import pytest

from onepass.tables.inputs import Inputs
from onepass.tables.reasons import Reason
from onepass.tables.schema import SchemaOptions, infer_model


@pytest.mark.parametrize(("prefix", "is_number"), [("id", False), ("", True)])
def test_only_numbers_are_proposed_as_numbers(prefix: str, is_number: bool, tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("x,y\n" + "".join(f"{i % 7},{prefix}{i}.5\n" for i in range(1500)))
    with pytest.raises(ValueError, match="more than") as caught:
        infer_model(Inputs((str(file),)).sources(), SchemaOptions.of("y", task="classification"), rereadable=True)
    reason: Reason = caught.value.reason  # type: ignore[attr-defined]
    assert reason.code == "too_many_classes"
    assert ("task" in caught.value.suggestions) == is_number  # type: ignore[attr-defined]
    assert ("number" in str(reason)) == is_number
