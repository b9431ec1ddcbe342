"""The tables that come with scikit-learn, River, statsmodels and vega_datasets, and what is predicted in each.

All that need no download are here, but for those in `LEFT_OUT`. The target is the one that the package, or the source
it names, has in mind. Columns that give the target away (its square, its parts, the number of the row) are dropped.
"""

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib.resources import files

import pandas as pd
from sklearn import datasets

__all__ = ["LEFT_OUT", "ShippedTable", "shipped_tables"]

LEFT_OUT = {
    "statsmodels": "heart (censored times); nile, sunspots and elec_equip (the only other column is the row number); "
    "elnino and fertility (one column per month or year); china_smoking, "
    "committee, copper, cpunish, longley, stackloss (fewer than 30 rows)",
    "vega_datasets": "iris (the same as scikit-learn's); anscombe, burtin, crimea (fewer than 30 rows per series)",
    "scikit-learn": "linnerud (20 rows)",
}


@dataclass(frozen=True)
class ShippedTable:
    """A table and its target."""

    package: str
    name: str
    target: str
    load: Callable[[], pd.DataFrame]
    task: str = "regression"
    in_order: bool = False  # the rows are a time series, and stay in their order

    @property
    def is_classes(self) -> bool:
        """Whether the target is a class."""
        return self.task == "classification"


def shipped_tables() -> Iterator[ShippedTable]:
    """All of them."""
    yield from _scikit_learn()
    yield from _river()
    yield from _statsmodels()
    yield from _vega()


def _scikit_learn() -> Iterator[ShippedTable]:
    def frame(name: str) -> pd.DataFrame:
        found = getattr(datasets, f"load_{name}")(as_frame=True)
        table: pd.DataFrame = found.frame.rename(columns=str)
        if hasattr(found, "target_names") and name != "diabetes":
            table["target"] = [str(found.target_names[k]) for k in found.target]
        return table

    for name in ("iris", "wine", "breast_cancer", "digits"):
        yield ShippedTable("scikit-learn", name, "target", partial(frame, name), "classification")
    yield ShippedTable("scikit-learn", "diabetes", "target", partial(frame, "diabetes"))


def _river() -> Iterator[ShippedTable]:
    def table(name: str, target: str, task: str, *drop: str, in_order: bool = True) -> ShippedTable:
        def load() -> pd.DataFrame:
            return pd.read_csv(str(files("river.datasets") / name)).drop(columns=list(drop))

        return ShippedTable("river", name.split(".")[0], target, load, task, in_order)

    def banana() -> pd.DataFrame:
        with zipfile.ZipFile(str(files("river.datasets") / "banana.zip")) as archive:
            text = archive.read("banana.all.txt").decode()
        rows = [line.split() for line in text.splitlines()]
        points = [{"class": label, **dict(pair.split(":") for pair in pairs)} for label, *pairs in rows]
        return pd.DataFrame(points).astype({"1": float, "2": float}).rename(columns={"1": "x", "2": "y"})

    yield table("airline-passengers.csv", "passengers", "regression")
    yield ShippedTable("river", "banana", "class", banana, "classification", True)
    yield table("chick-weights.csv", "weight", "regression")
    yield table("phishing.csv.gz", "is_phishing", "classification")
    yield table("segment.csv.zip", "category", "classification")
    yield table("shuttle.csv.gz", "anomaly", "classification")
    yield table("solar-flare.csv.zip", "c-class-flares", "regression", "m-class-flares", "x-class-flares")
    yield table("sp500.csv.gz", "next_day_return", "regression")
    yield table("trump_approval.csv.gz", "five_thirty_eight", "regression")
    yield table("water-flow.csv", "Water flow [l/s]", "regression")
    others = [f"Class{k}" for k in range(2, 15)]
    yield table("yeast.csv.gz", "Class1", "classification", *others)


def _statsmodels() -> Iterator[ShippedTable]:
    def table(path: str, target: str, task: str = "regression", *drop: str, in_order: bool = False) -> ShippedTable:
        def load() -> pd.DataFrame:
            text = (files("statsmodels.datasets") / path).read_text(encoding="utf-8-sig")
            found = pd.read_csv(io.StringIO(text), sep=None, engine="python", quotechar='"')
            return found.rename(columns=lambda name: name.strip("'")).drop(columns=list(drop)).dropna(subset=[target])

        return ShippedTable("statsmodels", path.split("/")[0], target, load, task, in_order)

    yield table("anes96/anes96.csv", "vote", "classification")
    yield table("cancer/cancer.csv", "cancer")
    yield table("ccard/ccard.csv", "AVGEXP")
    yield table("co2/co2.csv", "co2", in_order=True)
    yield table("danish_data/data.csv", "lrm", in_order=True)
    yield table("engel/engel.csv", "foodexp")
    yield table("fair/fair.csv", "affairs")
    yield table("grunfeld/grunfeld.csv", "invest")
    yield table("interest_inflation/E6.csv", "Dp", in_order=True)
    yield table("macrodata/macrodata.csv", "infl", "regression", "realint", in_order=True)
    yield table("modechoice/modechoice.csv", "choice", "classification", "individual")
    yield table("randhie/randhie.csv", "mdvis")
    yield table("scotland/scotvote.csv", "YES")
    yield table("spector/spector.csv", "GRADE", "classification", "OBS")
    yield table("star98/star98.csv", "PR50M", "regression", "MATHTOT")
    yield table("statecrime/statecrime.csv", "murder")
    yield table("strikes/strikes.csv", "duration")


def _vega() -> Iterator[ShippedTable]:
    def table(name: str, target: str, task: str = "regression", *drop: str, in_order: bool = False) -> ShippedTable:
        def load() -> pd.DataFrame:
            source = str(files("vega_datasets") / "_data" / name)
            found: pd.DataFrame = pd.read_csv(source) if name.endswith(".csv") else pd.read_json(source)
            return found.drop(columns=list(drop)).dropna(subset=[target])

        return ShippedTable("vega_datasets", name.split(".")[0], target, load, task, in_order)

    yield table("airports.csv", "longitude", "regression", "country")
    yield table("barley.json", "yield")
    yield table("cars.json", "Miles_per_Gallon")
    yield table("driving.json", "miles", in_order=True)
    yield table("iowa-electricity.csv", "net_generation")
    yield table("la-riots.csv", "type", "classification")
    yield table("ohlc.json", "close", in_order=True)
    yield table("seattle-temps.csv", "temp", in_order=True)
    yield table("seattle-weather.csv", "weather", "classification", in_order=True)
    yield table("sf-temps.csv", "temp", in_order=True)
    yield table("stocks.csv", "price")
    yield table("us-employment.csv", "nonfarm_change", in_order=True)
    yield table("wheat.json", "wheat", in_order=True)
