import pytest
from benchmarks.cells import Cell, reached

from benchmarks import few_rows, trust


@pytest.mark.parametrize(
    ("value", "target", "expected"),
    [
        (0.1, "<= 0.1", True),
        (0.149, "<= 0.1", True),  # as precisely as the target is written
        (0.149, "<= 0.10", False),
        (-2.43, ">= -2.42", False),
        (-2.42, ">= -2.42", True),
        (90.0, ">= 90", True),
        (89.4, ">=90", False),
        (93.5, "93.5-96.5", True),
        (96.6, "93.5-96.5", False),
        (-1.0, "-2--0.5", True),
        (float("nan"), "<= 1", False),
        (float("inf"), ">= 1", True),
        (1.0, "at its best", None),
        (1.0, "<= 3 of 5", None),
        (1.0, "", None),
    ],
)
def test_a_value_is_compared_with_its_target(value: float, target: str, expected: bool | None) -> None:
    assert reached(value, target) is expected


def test_the_table_has_every_cell_and_commands_print_missed_bounds() -> None:
    cells = (Cell("Few", "linear", 94.0, "93.5-96.5"), Cell("Few", "tanh", 78.0, ">= 90"))
    words = trust.explanation("Few: how many.\n\nMore words.\n\n    python -m benchmarks.few\n\nDetails.\n")
    assert words == "Few: how many.\n\nMore words."
    assert list(trust.table(cells)) == ["| Few | measured |", "|---|---|", "| linear | 94 |", "| tanh | 78 |"]
    assert ["MISSED" in cell.line for cell in cells] == [False, True]


def test_the_page_is_that_of_the_stored_figures() -> None:
    assert trust.PAGE.read_text(encoding="utf-8") == trust.page(trust.read())


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(SystemExit, match=r"benchmarks/not_there\.py"):
        trust.measure("not_there")


@pytest.mark.parametrize("name", trust.MODULES)
def test_every_section_can_be_imported_and_says_what_it_measures(name: str) -> None:
    module = __import__(f"benchmarks.{name}", fromlist=["cells"])
    assert callable(module.cells)
    assert len(trust.explanation(module.__doc__)) > 40


def test_few_rows_are_learned_from_the_prior_that_the_weights_come_from() -> None:
    found = few_rows.cells(replicates=20)
    assert len(found) >= len(few_rows.STUDIES)
    for cell in found:
        assert 60.0 < cell.value <= 100.0, cell
