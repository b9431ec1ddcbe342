"""What all scenes have in common: views, and the words for what has been learned."""

from typing import Any

import msgspec

from onepass.service.playground.following import Learned

__all__ = ["Scene", "View", "numbers_learned", "plural", "rows_learned"]

_TWO_SIDED_95 = 1.96


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What the page is to show."""

    says: str
    """What has happened, in words, for those who don't see it too."""


class Scene:
    """Answers the requests of one scene; keeps the models of the last one."""

    def view(self, request: Any) -> View:
        """Learn what is new in a request, and show the belief."""
        raise NotImplementedError


def numbers_learned(learned: Learned, points: list[tuple[float, float]]) -> str:
    """Say what has been learned of points whose targets are numbers.

    Examples
    --------
    >>> from onepass.service.playground.following import Effect
    >>> numbers_learned(Learned(1, False, Effect(0.0, 1.0, 0.3, 0.5)), [(0.0, 0.0), (1.0, 0.4)])
    'Point 2 at x = 1.00, y = 0.40: one step, and the band there shrank from ±1.96 to ±0.98.'
    >>> numbers_learned(Learned(2, True, None), [(0.0, 0.0), (1.0, 0.4)])
    'Earlier points have changed, so 2 points were learned again from the prior.'
    """
    effect = learned.effect
    if effect is None or learned.n_new != 1 or learned.anew:
        return rows_learned(learned, len(points))
    x, y = points[-1]
    before, after = (f"±{_TWO_SIDED_95 * std:.2f}" for std in (effect.std_before, effect.std_after))
    shrank = effect.std_after < effect.std_before
    change = f"{'shrank' if shrank else 'grew'} from {before} to {after}" if before != after else f"stayed at {after}"
    return f"Point {len(points)} at x = {x:.2f}, y = {y:.2f}: one step, and the band there {change}."


def rows_learned(learned: Learned, n_rows: int) -> str:
    """Say that rows were learned, without a word about any of them."""
    if not n_rows:
        return "Nothing is learned yet: this is the prior, what the model believes before any data."
    what = plural(n_rows, "point")
    if learned.anew:
        were = "was" if n_rows == 1 else "were"
        return f"Earlier points have changed, so {what} {were} learned again from the prior."
    if learned.n_new:
        return f"{plural(learned.n_new, 'point')} learned, one step each."
    return f"Nothing new to learn: the model still has {what}."


def plural(n: int, what: str) -> str:
    """A number of things, in words.

    Examples
    --------
    >>> plural(1, "point"), plural(3, "point")
    ('1 point', '3 points')
    """
    return f"{n} {what}{'' if n == 1 else 's'}"
