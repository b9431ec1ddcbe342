"""Models that learned different rows from one prior, put together."""

from onepass.merging.merging import Merging, Rounds, Site, merge

__all__ = ["Merging", "Rounds", "Site", "merge"]
