"""
Anomalies: a spike, a new level, a run
======================================

The last three of twenty weeks of hourly load. A spike, a new level, and a night with several odd values in a row raise
alarms of three kinds; the grey band is what was expected of each value before it came. The score below is 1 less how
rare such evidence is. It is drawn as the number of nines, so 4 is one value in 10,000. At one false alarm in 1,000
values, one may well be among these 504.
"""

import matplotlib.pyplot as plt
import numpy as np

from onepass.forecasting import AnomalyScorer

rng = np.random.default_rng(2)
WEEKS = 20
t = np.arange(WEEKS * 168)
start = (WEEKS - 3) * 168
week = 3.0 * np.sin(2 * np.pi * t / 168)
load = 50.0 + week + 12.0 * np.sin(2 * np.pi * t / 24) + rng.normal(size=len(t))
load[start + 74] += 9.0
load[start + 184 : start + 192] += rng.choice([-3.0, 3.0], size=8)
load[start + 304 :] += 15.0

found = AnomalyScorer(season_length=(24, 168), false_alarms=1e-3).score_then_learn(load)
shown = slice(start, None)
days = t / 24.0

figure, (above, below) = plt.subplots(
    2, 1, figsize=(9.0, 4.6), layout="constrained", sharex=True, height_ratios=[2.0, 1.0]
)
above.fill_between(days[shown], found.low[shown], found.high[shown], color="0.85", lw=0, label="limits")
above.plot(days[shown], load[shown], color="black", lw=0.9, label="load")
for kind, marker, colour in (("spike", "^", "C3"), ("run", "s", "C1"), ("level", "D", "C0")):
    at = np.flatnonzero(found.kind == kind)
    above.plot(days[at], load[at], marker, color=colour, ms=7, label=kind)
above.set(ylabel="load")
above.legend(loc="upper left", ncols=5, fontsize="small")
below.plot(days[shown], -np.log10(np.maximum(1.0 - found.score[shown], 1e-12)), color="C3", lw=0.9)
below.axhline(3.0, color="0.4", lw=1, ls="--")
below.set(xlabel="day", ylabel="score (nines)")
plt.show()
