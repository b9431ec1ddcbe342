"""Figures and self-contained HTML reports."""
