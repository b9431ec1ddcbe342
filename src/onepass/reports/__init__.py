"""Figures and self-contained HTML reports."""

from typing import TYPE_CHECKING, Any

from onepass._extras import require

if TYPE_CHECKING:
    from onepass.reports.page import report

__all__ = ["report"]

require("plots", "a figure")


def __getattr__(name: str) -> Any:
    if name == "report":
        from onepass.reports.page import report

        return report
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
