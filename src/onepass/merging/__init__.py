"""Models that learned different rows from one prior, merged into one."""

from onepass.merging.merging import Merging, merge
from onepass.merging.rounds import Rounds
from onepass.merging.sites import Site

__all__ = ["Merging", "Rounds", "Site", "merge"]
