"""What the pages on extending the library ask for is enough: a built-in addition touches the two files they name."""

import re
from pathlib import Path

import pytest

from tests.helpers.extending import EXTEND, PackageCopy

# Page, the module that is written, and a program that uses the addition by its name; it prints what it expects.
ADDITIONS = {
    "activation": (
        "activations/sine.py",
        """
        import onepass
        model = onepass.BayesianPerceptron(1, "sine", noise=0.1).learn([[1.0], [2.0]], [0.8, 0.9])
        onepass.save(model, "model")
        print(onepass.load("model").activation.__class__.__name__)
        """,
        "Sine",
    ),
    "likelihood": (
        "likelihoods/saturating.py",
        """
        import onepass
        model = onepass.BayesianPerceptron(1, "linear", observation="saturating").learn([[1.0], [2.0]], [0.8, 1.0])
        onepass.save(model, "model")
        print(onepass.load("model").interval([[9.0]], 0.9)[1].item())
        """,
        "1.0",
    ),
    "covariance": (
        "beliefs/pair.py",
        """
        import onepass
        model = onepass.BayesianNetwork(1, (6,), covariance="pair").learn([[1.0], [2.0]], [0.8, 1.0])
        onepass.save(model, "model")
        print([len(block) for block in onepass.load("model").cov])
        """,
        "[4, 4, 4, 7]",
    ),
    "layer": (
        "layers/conv1d.py",
        """
        import onepass
        from onepass.layers import Conv1D
        model = onepass.BayesianNetwork(5, (Conv1D(2, 3),)).learn([[1.0, 2.0, 3.0, 4.0, 5.0]], [0.8])
        onepass.save(model, "model")
        print(onepass.load("model").hidden)
        """,
        "(Conv1D(filters=2, kernel=3),)",
    ),
    "metric": (
        "evaluation/metrics/relative_error.py",
        """
        import numpy as np
        from onepass.evaluation.metrics import MetricSet, NumberPredictions
        rows = NumberPredictions(np.array([2.0, 4.0]), np.array([3.0, 4.0]))
        print(MetricSet("numbers", with_std=False).update(rows).get()["relative_error"])
        """,
        "0.25",
    ),
    "file-format": (
        "tables/readers/arrow_file.py",
        """
        import pyarrow as pa
        from onepass.tables.readers.registry import open_source
        table = pa.table({"km": [1.0], "price": [2.0]})
        with pa.ipc.new_file("trips.arrow", table.schema) as writer:
            writer.write_table(table)
        print(open_source("trips.arrow").columns())
        """,
        "['km', 'price']",
    ),
    "command": (
        "cli/count.py",
        """
        from onepass.cli.main import main
        main(["count", "--help"])
        """,
        "Usage: onepass count [OPTIONS] MODEL",
    ),
    "operation": (
        "service/operations/pause_arms.py",
        """
        from onepass.service.web.table import OPERATIONS
        print([one.address for one in OPERATIONS if one.name == "pause_arms"])
        """,
        "['/v1/models/{name}/pause']",
    ),
    "served-model": (
        "service/served/river.py",
        """
        from onepass.river import PerceptronRegressor
        from onepass.service.served import serve
        model = PerceptronRegressor()
        model.learn_one({"km": 1.0}, 2.0)
        print(serve(model).kind, serve(model).schema()["columns"][0]["name"])
        """,
        "river km",
    ),
    "event-store": (
        "events/memory.py",
        """
        from onepass.events import open_event_log
        open_event_log("memory://a").append("price", "label", "order 17", {"y": 0.1})
        print(open_event_log("memory://a").last("price"), open_event_log("memory://b").last("price"))
        """,
        "1 0",
    ),
}


def files_in_the_table(page: str) -> tuple[str, str]:
    """Folder of the module to write, and the other file, as the table of the index names them."""
    text = (EXTEND / "index.md").read_text(encoding="utf-8")
    found = re.search(
        rf"^\|[^|]*\| a module of `([\w/]+)`, `([\w/.]+)` \| \[[^]]*\]\({page}\.md\) \|$", text, re.MULTILINE
    )
    assert found, f"the table of the index has no row for {page}.md"
    return found[1], found[2]


def test_every_page_is_followed() -> None:
    assert {path.stem for path in EXTEND.glob("*.md")} == {"index", *ADDITIONS}


@pytest.mark.parametrize("page", ADDITIONS)
def test_a_built_in_addition_touches_two_files(page: str, tmp_path: Path) -> None:
    module, program, expected = ADDITIONS[page]
    copy = PackageCopy(tmp_path, page, module)
    folder, table = files_in_the_table(page)
    assert module.rpartition("/")[0] + "/" == folder
    assert copy.touched == {module, table}
    assert expected in copy.run(re.sub(r"^ {8}", "", program, flags=re.MULTILINE))
