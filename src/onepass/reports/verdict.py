"""The verdict at the top of a report: what a reader wants to know before any figure, each point checked.

Is it better than guessing, are its intervals as wide as they should be, does a single row spoil the score, and could
the rows be read? The thresholds are those at which a person should look twice.
"""

from collections.abc import Iterator

from onepass.evaluation.metrics import ClassCalibrationError, Coverage95
from onepass.evaluation.prequential import OURS, Trial
from onepass.reports.html import Claim, Verdict

__all__ = ["claims", "summary"]

_CLEARLY = 0.05  # share of the error of a reference by which a model is better
_NEAR, _FAR = 0.02, 0.05  # how far coverage, or a probability on average, is off
_FEW, _MANY = 0.01, 0.05  # share of rows rejected


def summary(trial: Trial) -> str:
    """The score in a sentence, next to the best simple prediction."""
    loss = trial.worst.metric
    ours = trial.scores()[OURS]
    words = f"{loss.title} {loss.text(ours[loss.name])} over {trial.rows:,} rows"
    reference = _best_by_loss(trial)
    if reference is None or not reference[1] > 0.0:
        return f"{words}."
    name, error = reference
    change = 100.0 * (1.0 - ours[loss.name] / error)
    than = f"{abs(change):.0f} % {'lower' if change >= 0.0 else 'higher'} than that of the {_spoken(name)}"
    return f"{words}, {than} ({loss.text(error)})."


def _best_by_loss(trial: Trial) -> tuple[str, float] | None:
    loss = trial.worst.metric.name
    found = {name: scores.total()[loss] for name, scores in trial.compared.items()}
    best = min(found, key=lambda name: found[name], default=None)
    return None if best is None else (best, found[best])


def _spoken(name: str) -> str:
    return name.replace("same time last period", "value of the same time last period")


def claims(trial: Trial) -> tuple[Claim, ...]:
    """What is checked, what was found, and whether that is good."""
    return tuple(claim for check in (_skill, _calibration, _single_rows, _reading) for claim in check(trial))


def _skill(trial: Trial) -> Iterator[Claim]:
    reference = _best_by_loss(trial)
    if reference is None:
        return
    loss = trial.worst.metric
    _, error = reference
    ours = trial.scores()[OURS][loss.name]
    better = ours < (1.0 - _CLEARLY) * error
    verdict = Verdict.HOLDS if better else Verdict.IN_PART if ours < error else Verdict.FAILS
    yield Claim("It predicts better than the simplest predictions do", summary(trial), verdict)


def _calibration(trial: Trial) -> Iterator[Claim]:
    scores = trial.scores()[OURS]
    if trial.task == "classes":
        off = scores[ClassCalibrationError.name]
        found = f"Probabilities and what came true differ by {100.0 * off:.1f} percentage points on average."
        yield Claim("Its probabilities can be taken at their word", found, _graded(off, _NEAR, _FAR))
        return
    share = scores[Coverage95.name]
    count = round(share * trial.rows)
    found = f"{count:,} of {trial.rows:,} targets, {100.0 * share:.1f} %, lay inside."
    off = abs(share - 0.95) if trial.task == "numbers" else max(0.95 - share, 0.0)
    yield Claim("Its 95 % intervals contain 95 % of the targets", found, _graded(off, _NEAR, _FAR))


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
