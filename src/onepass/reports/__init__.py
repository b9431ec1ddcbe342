"""Figures and self-contained HTML reports."""

from onepass._extras import require

require("plots", "a figure")
