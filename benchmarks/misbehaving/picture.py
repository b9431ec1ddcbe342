"""The picture of docs/tutorials/drift-and-outliers.md: a sensor that spikes and jumps, and what two models make of it.

A reading follows a daily cycle and has noise; three times it spikes, once its level jumps, later the cycle itself grows
slowly. A plain model and one with our settings predict every reading before they learn it.
"""

from typing import Any

import numpy as np

from benchmarks.misbehaving.study import OURS
from onepass import BayesianPerceptron
from onepass._typing import FloatArray
from onepass.reports.plots import BASELINE_2, EXACT, GREY, PAPER, house_style, label_panels, new_figure, render

__all__ = ["draw", "readings"]

ROWS, DAY, NOISE = 360, 60.0, 0.25
SPIKES = {50: 9.0, 95: -7.0, 130: 12.0}
JUMP_AT, JUMP, GROWS_AT = 180, 5.0, 260


def readings() -> tuple[FloatArray, FloatArray]:
    """Inputs, sine and cosine of the time of day, and the readings."""
    t = np.arange(ROWS)
    phase = 2.0 * np.pi * t / DAY
    cycle = np.sin(phase) * (1.0 + np.clip(t - GROWS_AT, 0, None) / 60.0)
    y = cycle + JUMP * (t >= JUMP_AT) + np.random.default_rng(3).normal(0.0, NOISE, ROWS)
    for row, size in SPIKES.items():
        y[row] += size
    return np.column_stack([np.sin(phase), np.cos(phase)]), y


def draw() -> bytes:
    """Render the picture as PNG."""
    X, y = readings()
    seen, scores = _model(OURS).predict_score_learn(X, y)
    plain = _model({}).predict_then_learn(X, y).mean
    t, std = np.arange(ROWS), seen.std
    doubted = scores.outliers > 0.5
    with house_style():
        figure, axes = new_figure(2, 1, 8.0, 5.2, sharex=True, height_ratios=[2.6, 1.0])
        top, bottom = axes[:, 0]
        top.fill_between(t, seen.mean - 2 * std, seen.mean + 2 * std, color=PAPER["color"], alpha=0.18, lw=0)
        top.plot(t, plain, color=GREY, lw=1.1, ls="--", label="plain")
        top.plot(t, seen.mean, color=PAPER["color"], lw=1.3, label='outliers=0.05, drift="auto", ±2 deviations')
        top.plot(t[~doubted], y[~doubted], ".", color="black", ms=2.6, label="readings")
        top.plot(t[doubted], y[doubted], "o", mfc="none", mec=EXACT["color"], mew=1.2, ms=6, label="not believed")
        top.set_ylim(-9.0, 19.0)
        top.set_ylabel("reading")
        top.legend(loc="upper left", ncols=2)
        bottom.plot(t, scores.outliers, color=EXACT["color"], lw=1.2, label="this reading is wrong")
        bottom.plot(t, scores.changes, color=BASELINE_2["color"], lw=1.2, label="the truth has changed")
        bottom.set_ylabel("probability")
        bottom.set_xlabel("row")
        bottom.set_ylim(-0.03, 1.05)
        bottom.legend(loc=(0.56, 0.5))
        label_panels(axes, ["each reading, predicted before it was learned", "what the model thinks of it"])
        return render(figure, "png")


def _model(settings: dict[str, Any]) -> BayesianPerceptron:
    return BayesianPerceptron(2, "linear", cov=[100.0, 1.0, 1.0], noise="learn", **settings)
