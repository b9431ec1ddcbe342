"""Alarms of a run: rows that are not trusted, and changes, written to a file as they are found, and counted."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onepass.cli.console import counted
from onepass.cli.growing_table import GrowingTable, WithTable, noted_tally

if TYPE_CHECKING:
    from onepass.tables.alarms import Alarm, AlarmDetector
    from onepass.tables.model import TabularModel

__all__ = ["Alarms"]

_COLUMNS = ("file", "line", "kind", "probability", "target", "predicted")


class Alarms(WithTable):
    """All alarms of a run, if they are asked for; as a context, which closes the file.

    Parameters
    ----------
    path : where to write them; None if they are not asked for
    model : TabularModel
    notes : dict, optional
        What `note` gave an interrupted run; anything written after that is cut off.
    """

    def __init__(self, path: Path | None, model: "TabularModel", notes: dict[str, Any] | None = None) -> None:
        from onepass.tables.alarms import CHANGE, OUTLIER, AlarmDetector, can_detect

        known = notes or {}
        if path is not None and not can_detect(model):
            raise click.UsageError(
                "--alarms needs a model of numbers, which sets absurd targets aside, or one that was made with "
                "--outliers above 0, which detects targets that it does not believe, or with --drift auto, which "
                "detects changes."
            )
        self._path = path
        self._counts = {OUTLIER: noted_tally(known, "outliers"), CHANGE: noted_tally(known, "changes")}
        self._table = GrowingTable("alarms", path, _COLUMNS, known)
        self._detector = AlarmDetector(model, self._add, changing=bool(known.get("changing", False)))

    @property
    def detector(self) -> "AlarmDetector | None":
        """What learns the rows and reports alarms, if they are asked for."""
        return None if self._path is None else self._detector

    def _add(self, file: str, alarms: "Sequence[Alarm]") -> None:
        for alarm in alarms:
            self._counts[alarm.kind] += 1
        self._table.write(
            (file, str(one.line), one.kind, f"{one.probability:.4f}", one.target, one.predicted) for one in alarms
        )

    def note(self) -> dict[str, Any]:
        """What has to be kept with a run's progress, so that no alarm is written down twice."""
        return {**self._tally, "changing": self._detector.changing, **self._table.note()}

    def facts(self) -> dict[str, int]:
        """How many there were, by their kind; nothing if they were not asked for."""
        return {} if self._path is None else self._tally

    @property
    def _tally(self) -> dict[str, int]:
        return {f"{kind}s": count for kind, count in self._counts.items()}

    def words(self) -> list[str]:
        """The same in words."""
        if self._path is None:
            return []
        return [f"alarms: {' and '.join(counted(n, kind) for kind, n in self._counts.items())}; see {self._path}"]
