"""The verdict at the top of a report: what a reader wants to know before any figure, each point checked.

Is it better than guessing, does a column give the target away, are its intervals as wide as they should be, does a
single row spoil the score, and could the rows be read? The thresholds are those at which a person should look twice;
what chance gives in so many rows is deducted before.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from scipy.stats import binomtest

from onepass.evaluation.metrics import ClassCalibrationError, Coverage50, Coverage80, Coverage95, Reliability
from onepass.evaluation.prequential import OURS, Trial
from onepass.reports.html import Claim, Verdict
from onepass.tables.advice import LEAKS

__all__ = ["claims", "intervals_claim", "probabilities_claim", "summary"]

_CLEARLY = 0.05  # share of the error of a reference by which a model is better
_FEWEST = 30  # rows, from which on calibration can be judged
_NEAR, _FAR = 0.02, 0.05  # how far probabilities are off on average
_LEVELS = ((0.5, 0.05, 0.1), (0.8, 0.05, 0.1), (0.95, 0.02, 0.05))
"""How far the share of targets inside is off: the same factor of an interval's width adds less to a high level."""
_BY_CHANCE = 0.05  # probability that right intervals are blamed at one of their levels
_FEW, _MANY = 0.01, 0.05  # share of rows rejected


def summary(trial: Trial) -> str:
    """The score in a sentence, next to the best simple prediction."""
    loss = trial.worst.metric
    ours = trial.scores()[OURS]
    words = f"{loss.title} {loss.text(ours[loss.name])} over {trial.rows:,} rows"
    reference = _best_by_loss(trial)
    if reference is None or not reference[1] > 0.0:
        return f"{words}.{_caution(trial)}"
    name, error = reference
    change = 100.0 * (1.0 - ours[loss.name] / error)
    than = f"{abs(change):.0f} % {'lower' if change >= 0.0 else 'higher'} than that of the {_spoken(name)}"
    return f"{words}, {than} ({loss.text(error)}).{_caution(trial)}"


def _caution(trial: Trial) -> str:
    return f" Scores of {trial.rows:,} row{'s' * (trial.rows != 1)} are mostly chance." if trial.is_small else ""


def _best_by_loss(trial: Trial) -> tuple[str, float] | None:
    loss = trial.worst.metric.name
    found = {name: scores.total()[loss] for name, scores in trial.compared.items()}
    best = min(found, key=lambda name: found[name], default=None)
    return None if best is None else (best, found[best])


def _spoken(name: str) -> str:
    return name.replace("same time last period", "value of the same time last period")


def claims(trial: Trial) -> tuple[Claim, ...]:
    """What is checked, what was found, and whether that is good."""
    return tuple(claim for check in (_skill, _leaks, _calibration, _single_rows, _reading) for claim in check(trial))


def _skill(trial: Trial) -> Iterator[Claim]:
    reference = _best_by_loss(trial)
    if reference is None:
        return
    loss = trial.worst.metric
    _, error = reference
    ours = trial.scores()[OURS][loss.name]
    better = ours < (1.0 - _CLEARLY) * error
    verdict = Verdict.HOLDS if better else Verdict.IN_PART if ours < error else Verdict.FAILS
    if trial.is_small:
        verdict = Verdict.TOO_FEW
    yield Claim("It predicts better than the simplest predictions do", summary(trial), verdict)


def _leaks(trial: Trial) -> Iterator[Claim]:
    found = " ".join(f"{advice}." for advice in trial.model.advice if advice.reason.code in LEAKS)
    if found:
        yield Claim("No column gives the target away", found, Verdict.FAILS)


def _calibration(trial: Trial) -> Iterator[Claim]:
    if trial.task == "classes":
        yield probabilities_claim(trial.ours[ClassCalibrationError].reliability())
        return
    scores = trial.scores()[OURS]
    shares = [scores[metric.name] for metric in (Coverage50, Coverage80, Coverage95)]
    yield intervals_claim(shares, trial.rows, are_counts=trial.task == "counts")


def probabilities_claim(found: Reliability) -> Claim:
    """Whether probabilities come true as often as they should, as far as so many rows can tell."""
    rows = found.rows.sum()
    part, by_chance = found.rows / rows, np.sqrt(found.predicted * (1.0 - found.predicted) / found.rows)
    off = float(part @ np.abs(found.predicted - found.observed))
    # A bin is off by the size of a normal number, of mean sqrt(2/pi) and variance 1 - 2/pi.
    spread = np.sqrt((1.0 - 2.0 / np.pi) * np.sum((part * by_chance) ** 2))
    chance = float(np.sqrt(2.0 / np.pi) * part @ by_chance + 2.0 * spread)
    words = f"Probabilities and what came true differ by {100.0 * off:.1f} percentage points on average"
    words += "." if off <= _NEAR else f"; up to {100.0 * chance:.1f} may be chance."
    verdict = Verdict.HOLDS if off <= _NEAR else _graded(off - chance, 0.0, _FAR)
    return Claim("Its probabilities can be taken at their word", words, _if_enough(verdict, int(rows)))


def intervals_claim(shares: Sequence[float], rows: int, *, are_counts: bool = False) -> Claim:
    """Whether the 50, 80 and 95 % intervals of all rows contain such shares of the targets.

    An interval between whole counts may contain more.
    """
    words, verdicts = [], []
    for (level, near, far), share in zip(_LEVELS, shares, strict=True):
        inside = round(share * rows)
        low, high = binomtest(inside, rows).proportion_ci(1.0 - _BY_CHANCE / len(_LEVELS))
        beyond = 0.0 if are_counts and share > level else max(low - level, level - high, 0.0)
        verdict = Verdict.HOLDS if abs(share - level) <= near else _graded(beyond, 0.0, far)
        width = "" if verdict is Verdict.HOLDS else ", which are too " + ("wide" if share > level else "narrow")
        words.append(f"{inside:,} ({100.0 * share:.1f} %) in the {100.0 * level:g} % intervals{width}")
        verdicts.append(verdict)
    worst = max(verdicts, key=[Verdict.HOLDS, Verdict.IN_PART, Verdict.FAILS].index)
    said = "Its 50, 80 and 95 % intervals contain such shares of the targets"
    return Claim(said, f"Of {rows:,} targets {'; '.join(words)}.", _if_enough(worst, rows))


def _if_enough(verdict: Verdict, rows: int) -> Verdict:
    """The verdict, unless nothing was found only because there are so few rows."""
    return Verdict.TOO_FEW if verdict is Verdict.HOLDS and rows < _FEWEST else verdict


def _single_rows(trial: Trial) -> Iterator[Claim]:
    words = trial.worst.words(with_folder=False)
    if words:
        yield Claim("No single row decides the score", f"{words[:1].upper()}{words[1:]}.", Verdict.FAILS)


def _reading(trial: Trial) -> Iterator[Claim]:
    read = trial.read
    if not read.n_read:
        return
    share = read.n_rejected / read.n_read
    found = f"{read.n_rejected:,} of {read.n_read:,} rows were rejected."
    if read.n_without_target:
        found += f" {read.n_without_target:,} more had no target."
    yield Claim("The rows could be read", found, _graded(share, _FEW, _MANY))


def _graded(value: float, near: float, far: float) -> Verdict:
    return Verdict.HOLDS if value <= near else Verdict.IN_PART if value <= far else Verdict.FAILS
