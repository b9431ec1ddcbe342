"""
Forecast: a fan chart, and what is behind it
============================================

Six years of monthly sales, with a trend, a season that grows with the level, and six months that were never recorded.
Left: the forecast of the next two years, with the ranges that contain 50, 80 and 95 % of the values to come, and three
of the courses that the series may take. Right: what the mean is made of. The next value costs one update, not a refit.
"""

import matplotlib.pyplot as plt
import numpy as np

from onepass import BayesianForecaster

rng = np.random.default_rng(3)
KNOWN, AHEAD = 72, 24
t = np.arange(KNOWN + AHEAD)
season = 1.0 + 0.25 * np.sin(2 * np.pi * t / 12) + 0.1 * np.cos(4 * np.pi * t / 12)
sales = 100.0 * 1.008**t * season * np.exp(0.04 * rng.normal(size=len(t)))
known = sales[:KNOWN].copy()
known[40:46] = np.nan

forecast = BayesianForecaster(season_length=12).learn(known).forecast(AHEAD)
ahead = t[KNOWN:]

figure, (fan, parts) = plt.subplots(1, 2, figsize=(10.0, 3.6), layout="constrained", width_ratios=[1.6, 1.0])
for level in (0.95, 0.8, 0.5):
    fan.fill_between(ahead, *forecast.interval(level), color="C0", alpha=0.2, lw=0, label=f"{level:.0%}")
fan.plot(ahead, forecast.sample_paths(3, rng=0).T, color="C0", lw=0.7, alpha=0.8)
fan.plot(t[:KNOWN], known, color="black", lw=1.2, label="values learned")
fan.plot(ahead, forecast.mean, color="C0", lw=2, label="mean")
fan.plot(ahead, sales[KNOWN:], ".", color="C3", label="what came")
fan.set(xlabel="month", ylabel="sales")
fan.legend(loc="upper left", ncols=2, fontsize="small")

found = forecast.decomposition
for name, values in (("level", found.level), ("seasons", found.seasons), ("lags", found.lags)):
    parts.plot(ahead, values, label=name)
parts.plot(ahead, forecast.mean, color="black", lw=0.8, ls="--", label="their sum")
parts.set(xlabel="month")
parts.legend(fontsize="small")
plt.show()
