"""Section V-C and Figures 5 and 6: a ReLU perceptron learns a noisy softplus, against gradient descent."""

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from onepass._typing import FloatArray
from onepass.models.perceptron import BayesianPerceptron
from onepass.paper import gradient
from onepass.paper.base import COLUMNS, Tick, as_list, spread, trial_rng
from onepass.paper.gradient import Recipe, Score
from onepass.reports.html import Picture, Section, Table
from onepass.reports.plots import (
    BAND,
    BLACK,
    EXACT,
    OPPONENT,
    OPPONENT_2,
    PAPER,
    TRUTH,
    label_panels,
    new_figure,
    without_markers,
)

__all__ = ["TITLE", "Curve", "Example", "RegressionOutcome", "Trials", "run", "softplus", "steps"]

TITLE = "Nonlinear regression (V-C, Figs. 5 and 6)"
N_POINTS, N_TEST = 20, 40
NOISE = 0.01
SHOWN = (1, 5, 10)
TIMED_TRIALS = 10
TUNING_TRIALS = 50  # however few are reported: the opponent is to be at its best
RULES = {"paper": "kalman", "exact": "adf"}
_REPORTED, _TUNING = 2, 3  # streams of random numbers: what is tuned on one is reported on the other
_AXIS = np.linspace(-4.0, 4.0, 201)


def softplus(x: FloatArray) -> FloatArray:
    """Evaluate the paper's function, ``log(1 + e^(2x + 1))``."""
    return np.asarray(np.logaddexp(0.0, 2.0 * x + 1.0))


@dataclass(frozen=True)
class Trials:
    """Training points ``(trials, N_POINTS)``, test points ``(trials, N_TEST)``, noise for initial weights."""

    x: FloatArray
    y: FloatArray
    x_test: FloatArray
    y_test: FloatArray
    start: FloatArray

    @classmethod
    def draw(cls, seed: int, stream: int, trials: int) -> "Trials":
        """Training inputs fall in [-4, 2], test inputs in [-4, 4]; both targets are noisy."""
        return cls(
            *(np.stack(part) for part in zip(*(_draw_trial(seed, stream, i) for i in range(trials)), strict=True))
        )


@dataclass(frozen=True)
class Curve:
    """Rmse, and share of targets in the 3-sigma band, of each trial after each number of points."""

    rmse: FloatArray
    coverage: FloatArray


@dataclass(frozen=True)
class Band:
    """A prediction over the axis: mean, and standard deviation of the output."""

    mean: FloatArray
    std: FloatArray


@dataclass(frozen=True)
class Example:
    """The first trial, as each learner sees it after the numbers of points in ``SHOWN``."""

    x: FloatArray
    y: FloatArray
    bands: dict[str, tuple[Band, ...]]
    gradient: tuple[FloatArray, ...]


@dataclass(frozen=True)
class RegressionOutcome:
    """Everything measured, for both rules and the opponent."""

    curves: dict[str, Curve]
    gradient: FloatArray
    """Its rmse at its best, ``(trials, N_POINTS)``."""
    gradient_small: FloatArray
    """Its rmse with the best recipe that starts from small random weights."""
    chosen: Score
    chosen_small: Score
    scores: tuple[Score, ...]
    seconds: dict[str, FloatArray]
    """Seconds spent on learning up to each number of points, ``(N_POINTS,)``."""
    example: Example

    def numbers(self) -> dict[str, Any]:
        """Every number; keys with "seconds" in them vary from run to run."""
        paper, exact = self.curves["paper"], self.curves["exact"]
        return {
            "n": list(range(1, N_POINTS + 1)),
            "trials": len(paper.rmse),
            **_averages("bp_rmse", paper.rmse),
            **_averages("exact_rmse", exact.rmse),
            **_averages("gradient_rmse", self.gradient),
            **_averages("gradient_small_start_rmse", self.gradient_small),
            "bp_coverage_mean": as_list(paper.coverage.mean(axis=0)),
            "exact_coverage_mean": as_list(exact.coverage.mean(axis=0)),
            "bp_seconds": float(self.seconds["paper"][-1]),
            "exact_seconds": float(self.seconds["exact"][-1]),
            "gradient_seconds": float(self.seconds["gradient"][-1]),
            "bp_seconds_by_n": as_list(self.seconds["paper"]),
            "exact_seconds_by_n": as_list(self.seconds["exact"]),
            "gradient_seconds_by_n": as_list(self.seconds["gradient"]),
            "gradient_recipe": _describe(self.chosen),
            "gradient_small_start_recipe": _describe(self.chosen_small),
            "gradient_grid": [_describe(score) for score in self.scores],
        }

    def draw(self) -> dict[str, Figure]:
        """Draw the examples, and the errors and times of all trials."""
        return {"fig5_examples": self._draw_examples(), "fig6_rmse": self._draw_curves()}

    def _draw_examples(self) -> Figure:
        figure, axes = new_figure(2, 3, 8.8, 5.6, sharex=True, sharey=True)
        rules = (("paper", PAPER, "the paper's rule"), ("exact", EXACT, "onepass exact"))
        for row, (rule, style, label) in zip(axes, rules, strict=True):
            for panel, n, band, line in zip(row, SHOWN, self.example.bands[rule], self.example.gradient, strict=True):
                self._draw_example(panel, n, band, line, style, label)
            row[0].set_ylabel("$y$")
        for panel in axes[1]:
            panel.set_xlabel("$x$")
        everywhere = ("gradient descent", "true function", "data")
        entries = {
            label: handle for row in axes for handle, label in zip(*row[0].get_legend_handles_labels(), strict=True)
        }
        order = sorted(entries, key=lambda label: ("exact" in label) + 2 * (label in everywhere))
        figure.legend([entries[label] for label in order], order, loc="outside lower center", ncols=4)
        names = [f"{n} point{'s' * (n > 1)}" for n in SHOWN]
        label_panels(axes, [*(f"the paper's rule, {name}" for name in names), *(f"exact, {name}" for name in names)])
        return figure

    def _draw_example(
        self, panel: Axes, n: int, band: Band, line: FloatArray, style: dict[str, Any], label: str
    ) -> None:
        panel.plot(_AXIS, band.mean, label=label, zorder=3, **without_markers(style))
        low, high = band.mean - 3.0 * band.std, band.mean + 3.0 * band.std
        panel.fill_between(_AXIS, low, high, color=style["color"], label=f"{label}, 3$\\sigma$ band", **BAND)
        panel.plot(_AXIS, line, label="gradient descent", **without_markers(OPPONENT))
        panel.plot(_AXIS, softplus(_AXIS), label="true function", **TRUTH)
        x, y = self.example.x[:n], self.example.y[:n]
        panel.plot(x, y, linestyle="", marker="o", markersize=4.5, color=BLACK, label="data", zorder=4)
        panel.set(xlim=(-4, 4), ylim=(-1.5, 11), xticks=range(-4, 5, 2))

    def _draw_curves(self) -> Figure:
        figure, axes = new_figure(1, 3, 9.8, 3.5, width_ratios=(1.25, 1.25, 1))
        n = np.arange(1, N_POINTS + 1)
        lines = (
            (self.gradient_small, OPPONENT_2, "gradient descent, small start"),
            (self.gradient, OPPONENT, "gradient descent, its best"),
            (self.curves["exact"].rmse, EXACT, "onepass exact"),
            (self.curves["paper"].rmse, PAPER, "the paper's rule"),
        )
        bars = {"elinewidth": 0.8, "capsize": 1.6, "capthick": 0.8}
        for panel, shown in ((axes[0, 0], lines), (axes[0, 1], lines[1:])):
            for i, (rmse, style, label) in enumerate(shown):
                shift = 0.17 * (i - len(shown) / 2 + 0.5)  # so that the error bars stand side by side
                panel.errorbar(n + shift, rmse.mean(axis=0), rmse.std(axis=0), label=label, **bars, **style)
        axes[0, 0].set(ylabel="test rmse", ylim=(0, 4.5))
        axes[0, 1].set(ylabel="test rmse", ylim=(0, 1.0))
        for name, style in (("gradient", OPPONENT), ("exact", EXACT), ("paper", PAPER)):
            axes[0, 2].semilogy(n, 1e3 * self.seconds[name], **style)
        axes[0, 2].set(ylabel="learning time up to $n$ (ms)")
        axes[0, 2].yaxis.set_major_formatter("{x:g}")
        for panel in axes[0]:
            panel.set(xlabel="points seen, $n$", xlim=(0.3, N_POINTS + 0.7), xticks=(1, 5, 10, 15, 20))
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=4)
        label_panels(axes, ["error on test points", "the same, closer", "runtime"])
        return figure

    def section(self, svg: Mapping[str, bytes]) -> Section:
        """Tell who wins, when, and at what price."""
        numbers = self.numbers()
        trials = numbers["trials"]
        ratio = numbers["gradient_seconds"] / numbers["bp_seconds"]
        return Section(
            name="regression",
            title=TITLE,
            verdict=_verdict(numbers),
            question="Does the Bayesian perceptron learn a function from few points better than gradient descent?",
            setup=(
                "Targets are y = log(1 + e^{2x+1}) + v with v ~ N(0, 0.01): a softplus that no single ReLU can match. "
                f"{N_POINTS} training points fall uniformly in [−4, 2], {N_TEST} test points, noisy too, in [−4, 4]; "
                f"{trials} random trials. The Bayesian perceptron starts from mean [0 0] and the identity covariance "
                "and learns each point once, with ε = 0.01.",
                "The opponent is the same ReLU perceptron, trained afresh on the points seen so far by full-batch "
                "gradient descent on the squared error. Learning rate, epochs and initial weights are the best of a "
                f"grid, chosen on {TUNING_TRIALS} other trials: learning rates {_words(gradient.LEARNING_RATES)}; "
                f"epochs {_words(gradient.EPOCHS)}; initial (bias, weight) N(0, 0.1^{{2}}) “small”, N(0, 1) “wide”, or "
                "small around a bias of 1 “live”, which lets every point through at first; of recipes within 1 % of "
                f"each other the one with the fewest epochs. Chosen: {_recipe_words(self.chosen.recipe)}. Zero is no "
                "start at all, since a ReLU at zero has no gradient; the best recipe with a small start "
                f"({_recipe_words(self.chosen_small.recipe)}) is shown beside it.",
            ),
            pictures=(
                Picture(
                    "fig5_examples",
                    "Figure 5. The first trial after 1, 5 and 10 points: above the paper's rule, below our exact "
                    "update, each with the band of three standard deviations of the output.",
                    svg["fig5_examples"],
                ),
                Picture(
                    "fig6_rmse",
                    f"Figure 6. (a) Root mean squared error on the test points, average over {trials} trials; the bars "
                    "are one standard deviation. (b) The same without the small start, enlarged. (c) Time spent on "
                    f"learning up to the n-th point, logarithmic, median of {min(trials, TIMED_TRIALS)} trials timed "
                    "in turn.",
                    svg["fig6_rmse"],
                ),
            ),
            tables=(_claims(numbers), _errors(numbers)),
            reading=(
                f"After {N_POINTS} points the paper's rule reaches an rmse of {numbers['bp_rmse_mean'][-1]:.3f}, the "
                f"exact update {numbers['exact_rmse_mean'][-1]:.3f} and gradient descent at its best "
                f"{numbers['gradient_rmse_mean'][-1]:.3f}, which takes {ratio:.0f} times as long."
            ),
            departures=_departures(numbers),
        )


def _claims(numbers: dict[str, Any]) -> Table:
    """Hold the paper's claims against what came out."""

    def rmse(n: int) -> tuple[str, ...]:
        cells = (spread(numbers[f"{x}_rmse_mean"][n - 1], numbers[f"{x}_rmse_std"][n - 1], 3) for x in ("bp", "exact"))
        return (f"rmse after {n} point{'s' * (n > 1)}", "figure only", *cells)

    def ahead_of(opponent: str) -> list[str]:
        return [_ranges(_below(numbers, f"{x}_rmse_mean", f"{opponent}_rmse_mean")) for x in ("bp", "exact")]

    faster = [f"{numbers['gradient_seconds'] / numbers[f'{name}_seconds']:.1f} times" for name in ("bp", "exact")]
    coverage = [f"{100 * numbers[f'{name}_coverage_mean'][-1]:.1f} %" for name in ("bp", "exact")]
    return Table(
        f"Averages ± standard deviations over {numbers['trials']} trials. The paper shows curves and prints no number. "
        f"The last row is the share of test targets within the band after {N_POINTS} points, noise included.",
        COLUMNS,
        (
            *(rmse(n) for n in (1, 5, 10, 20)),
            ("ahead of gradient at n =", "1–20", *ahead_of("gradient")),
            ("  with a small start", "not said", *ahead_of("gradient_small_start")),
            ("faster than gradient", "figure only", *faster),
            ("targets within 3σ", "not reported", *coverage),
        ),
    )


def _errors(numbers: dict[str, Any]) -> Table:
    """Set all learners side by side."""
    names = ("bp", "exact", "gradient", "gradient_small_start")

    def row(n: int) -> tuple[str, ...]:
        cells = (spread(numbers[f"{x}_rmse_mean"][n - 1], numbers[f"{x}_rmse_std"][n - 1], 3) for x in names)
        return (f"rmse after {n} point{'s' * (n > 1)}", *cells)

    seconds = [f"{1e3 * numbers[f'{name}_seconds']:.1f} ms" for name in names[:3]]
    return Table(
        "All learners side by side. The learning time is that of following the stream: the Bayesian perceptron takes "
        "each point once, gradient descent is trained again after each.",
        ("", "the paper's rule", "onepass exact", "gradient, its best", "gradient, small start"),
        (*(row(n) for n in (1, 2, 5, 10, 15, 20)), (f"learning time, {N_POINTS} points", *seconds, "")),
    )


def _below(numbers: dict[str, Any], name: str, other: str) -> list[int]:
    """Numbers of points at which the one average lies below the other."""
    return [n for n, a, b in zip(numbers["n"], numbers[name], numbers[other], strict=True) if a < b]


def steps(trials: int) -> int:
    """The search, then two rules a trial, then the timings."""
    return N_POINTS + 2 * trials + min(trials, TIMED_TRIALS)


def run(seed: int, trials: int, tick: Tick) -> RegressionOutcome:
    """Choose the opponent's recipe on other trials, then let all learn the same points."""
    tuning = Trials.draw(seed, _TUNING, TUNING_TRIALS)
    scores = gradient.search(tuning.x, tuning.y, tuning.x_test, tuning.y_test, tuning.start, tick)
    chosen = gradient.cheapest_of_the_best(scores)
    chosen_small = gradient.cheapest_of_the_best([score for score in scores if score.recipe.start == "small"])
    data = Trials.draw(seed, _REPORTED, trials)
    return RegressionOutcome(
        curves={rule: _curve(update, data, tick) for rule, update in RULES.items()},
        gradient=_gradient_curve(chosen.recipe, data),
        gradient_small=_gradient_curve(chosen_small.recipe, data),
        chosen=chosen,
        chosen_small=chosen_small,
        scores=tuple(scores),
        seconds=_time(chosen.recipe, data, tick),
        example=_example(chosen.recipe, data),
    )


def _draw_trial(seed: int, stream: int, trial: int) -> tuple[FloatArray, ...]:
    rng = trial_rng(seed, stream, trial)
    x, x_test = rng.uniform(-4.0, 2.0, N_POINTS), rng.uniform(-4.0, 4.0, N_TEST)
    std = np.sqrt(NOISE)
    y, y_test = softplus(x) + std * rng.standard_normal(N_POINTS), softplus(x_test) + std * rng.standard_normal(N_TEST)
    return x, y, x_test, y_test, rng.standard_normal(2)


def _perceptron(update: str) -> BayesianPerceptron:
    return BayesianPerceptron(1, "relu", observation="gaussian", noise=NOISE, update=update)


def _curve(update: str, data: Trials, tick: Tick) -> Curve:
    curve = Curve(np.empty(data.x.shape), np.empty(data.x.shape))
    for trial, (x, y) in enumerate(zip(data.x, data.y, strict=True)):
        perceptron, rows, targets = _perceptron(update), data.x_test[trial][:, None], data.y_test[trial]
        for n in range(N_POINTS):
            seen = perceptron.learn(x[n : n + 1], y[n]).predict(rows)
            curve.rmse[trial, n] = np.sqrt(np.mean((seen.mean - targets) ** 2))
            curve.coverage[trial, n] = np.mean((seen.mean - targets) ** 2 <= 9.0 * (seen.var + seen.noise_var))
        tick()
    return curve


def _gradient_curve(recipe: Recipe, data: Trials) -> FloatArray:
    """Train all trials side by side on the first n points, for each n."""
    start = gradient.initial_weights(recipe.start, data.start)
    weights = (
        gradient.descend(start, data.x[:, :n], data.y[:, :n], recipe.learning_rate, recipe.epochs)
        for n in range(1, N_POINTS + 1)
    )
    return np.stack([gradient.rmse(w, data.x_test, data.y_test) for w in weights], axis=-1)


def _time(recipe: Recipe, data: Trials, tick: Tick) -> dict[str, FloatArray]:
    """Time the learners in turn, one trial after another; the time to have followed the stream up to each point."""
    seconds: dict[str, list[FloatArray]] = {"paper": [], "exact": [], "gradient": []}
    start = gradient.initial_weights(recipe.start, data.start)
    for trial in range(min(len(data.x), TIMED_TRIALS)):
        x, y = data.x[trial], data.y[trial]
        for rule, update in RULES.items():
            seconds[rule].append(_stopwatch(_learner(_perceptron(update), x, y)))
        seconds["gradient"].append(_stopwatch(_descender(start[trial], x, y, recipe)))
        tick()
    return {name: np.cumsum(np.median(times, axis=0)) for name, times in seconds.items()}


def _learner(perceptron: BayesianPerceptron, x: FloatArray, y: FloatArray) -> Any:
    return lambda n: perceptron.learn(x[n : n + 1], y[n])


def _descender(start: FloatArray, x: FloatArray, y: FloatArray, recipe: Recipe) -> Any:
    return lambda n: gradient.descend(start, x[: n + 1], y[: n + 1], recipe.learning_rate, recipe.epochs)


def _stopwatch(take_point: Any) -> FloatArray:
    """Seconds for each point in turn."""
    seconds = np.empty(N_POINTS)
    for n in range(N_POINTS):
        begin = perf_counter()
        take_point(n)
        seconds[n] = perf_counter() - begin
    return seconds


def _example(recipe: Recipe, data: Trials) -> Example:
    x, y = data.x[0], data.y[0]
    start = gradient.initial_weights(recipe.start, data.start[0])
    lines = (
        gradient.output(gradient.descend(start, x[:n], y[:n], recipe.learning_rate, recipe.epochs), _AXIS)
        for n in SHOWN
    )
    bands = {rule: tuple(_band(update, x[:n], y[:n]) for n in SHOWN) for rule, update in RULES.items()}
    return Example(x, y, bands, tuple(lines))


def _band(update: str, x: FloatArray, y: FloatArray) -> Band:
    seen = _perceptron(update).learn(x[:, None], y).predict(_AXIS[:, None])
    return Band(seen.mean, np.sqrt(seen.var))


def _averages(name: str, values: FloatArray) -> dict[str, list[float]]:
    return {f"{name}_mean": as_list(values.mean(axis=0)), f"{name}_std": as_list(values.std(axis=0))}


def _describe(score: Score) -> dict[str, Any]:
    recipe = score.recipe
    return {
        "start": recipe.start,
        "learning_rate": recipe.learning_rate,
        "epochs": recipe.epochs,
        "tuning_rmse": score.rmse if np.isfinite(score.rmse) else None,
    }


def _verdict(numbers: dict[str, Any]) -> str:
    if not _below(numbers, "gradient_rmse_mean", "bp_rmse_mean"):
        return "Reproduces."
    return "Reproduces in part: fast, and good with few points, but not ahead of gradient descent at its best."


def _departures(numbers: dict[str, Any]) -> tuple[str, ...]:
    """Say which of the paper's claims do not hold here, and where we expected better of ourselves."""
    found = []
    behind = _below(numbers, "gradient_rmse_mean", "bp_rmse_mean")
    if behind:
        late = np.abs(np.subtract(numbers["gradient_rmse_mean"], numbers["bp_rmse_mean"]))[9:].max()
        small = _below(numbers, "bp_rmse_mean", "gradient_small_start_rmse_mean")
        found.append(
            "“Independent of the size of the processed training data, the proposed BP outperforms classical "
            "gradient-based training”: not against gradient descent at its best, which has the lower rmse at "
            f"n = {_ranges(behind)}; from n = 10 on the two differ by at most {late:.3f}. Against the best recipe with "
            f"a small random start the claim holds at n = {_ranges(small)}: there, in some trials, no point gets "
            "through the ReLU, which then never learns. "
            "The paper does not say how its opponent starts."
        )
    wider = _below(numbers, "gradient_rmse_std", "bp_rmse_std")
    if wider:
        found.append(
            "“Tighter error bars”: against gradient descent at its best the spread of the paper's rule over the trials "
            f"is the wider one at n = {_ranges(wider)}."
        )
    if numbers["exact_rmse_mean"][-1] > numbers["bp_rmse_mean"][-1]:
        found.append(
            "The exact update is ahead of the paper's rule at "
            f"n = {_ranges(_below(numbers, 'exact_rmse_mean', 'bp_rmse_mean'))} and behind it at the end. It is exact "
            "for a ReLU with noise 0.01, and this softplus is neither: with a model that does not fit, more faith in "
            "it is no virtue."
        )
    coverage = numbers["bp_coverage_mean"][-1]
    if coverage < 0.99:
        found.append(
            f"The 3-σ band, noise included, holds {100 * coverage:.1f} % of the test targets after {N_POINTS} points "
            f"({100 * numbers['exact_coverage_mean'][-1]:.1f} % with the exact update) where a Gaussian would hold "
            "99.7 %: the belief does not know that the ReLU does not fit."
        )
    return tuple(found)


def _ranges(values: list[int]) -> str:
    """Write whole numbers as ranges.

    >>> _ranges([1, 2, 3, 7])
    '1–3, 7'
    """
    if not values:
        return "none"
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)


def _words(values: tuple[float, ...]) -> str:
    return ", ".join(f"{value:g}" for value in values)


def _recipe_words(recipe: Recipe) -> str:
    return f"{recipe.start} start, learning rate {recipe.learning_rate:g}, {recipe.epochs} epochs"
