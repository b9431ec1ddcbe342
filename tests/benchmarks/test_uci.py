import json
from pathlib import Path

import pytest
from benchmarks.published import TABLE
from benchmarks.uci.page import NAMES, Results, page


@pytest.fixture
def results(tmp_path: Path) -> Results:
    """Committees as good as the first published row on splits 0-9 and better on the rest; single networks far worse."""
    for suffix, worse in (("", 0.0), ("-single", 50.0)):
        for passes in (1, 10):
            entries = []
            for name in NAMES:
                rmse, likelihood = TABLE[0].figures[name]
                scores = [
                    {
                        "rmse": rmse + worse - (0.05 if split >= 10 else 0.0),
                        "log_likelihood": likelihood - worse + (0.5 if split >= 10 else 0.0),
                        "coverage": 95.0,
                    }
                    for split in range(20)
                ]
                entries.append({"dataset": name, "passes": passes, "scores": scores})
            (tmp_path / f"uci-{passes}{suffix}.json").write_text(json.dumps(entries))
    return Results(tmp_path)


def test_the_headline_leaves_out_the_splits_that_chose_the_defaults(results: Results) -> None:
    head = page(results).split("## At most ten passes")[0]
    rmse, likelihood = TABLE[0].figures["yacht"]
    assert f"| ten passes, committee | {rmse:.3f} ± 0.000 / {likelihood:.3f} ± 0.000 |" in head
    assert f"| ten passes, one network | {rmse + 50:.3f} ± 0.000 /" in head


def test_a_tie_is_no_win_and_the_page_says_who_is_better(results: Results) -> None:
    published = page(results).split("## At most ten passes, compared with published figures")[1].split("\n## ")[0]
    pbp = next(line for line in published.splitlines() if "| PBP" in line)
    assert pbp.endswith("| 0, 0 of 6 |")
    alone = next(line for line in published.splitlines() if line.startswith("Better than onepass, one network"))
    assert "boston, RMSE: PBP, MC dropout, deep ensembles, MC dropout 2018" in alone
    committee = next(line for line in published.splitlines() if line.startswith("Better than onepass on"))
    assert "PBP" not in committee
    assert "wine, RMSE: MC dropout, MC dropout 2018" in committee
