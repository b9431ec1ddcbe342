"""Merge models that started from one prior and learned different rows into one model."""

from onepass.merging.merging import Merging, merge
from onepass.merging.rounds import Rounds
from onepass.merging.sites import Site

__all__ = ["Merging", "Rounds", "Site", "merge"]
