"""Scores of several outputs, of which some were not observed, on a cluster."""

import numpy as np
import pytest

from onepass import BayesianNetwork
from onepass.integrations.dask.scoring import Tally


@pytest.mark.parametrize("observation", ["gaussian", "bernoulli"])
def test_every_observed_number_of_several_outputs_is_scored(observation: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = X @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(60, 3))
    Y = Y if observation == "gaussian" else (Y > 0.0).astype(np.float64)
    Y[rng.uniform(size=Y.shape) < 0.4] = np.nan
    Y[0] = np.nan
    seen = ~np.isnan(Y)
    network = BayesianNetwork(2, (4,), 3, observation=observation).learn(X, Y)
    predicted, tallies = network.predict(X), [Tally.of(network), Tally.of(network)]
    for tally, half in zip(tallies, (slice(0, 30), slice(30, None)), strict=True):
        tally.update(network, network.predict(X[half]), Y[half])
    tally = tallies[0].merge(tallies[1])
    values, error = tally.values(), (Y - predicted.mean)[seen]
    assert tally.rows == 60
    assert values["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)))
    if observation == "gaussian":
        inside = np.abs(error) < 1.959964 * np.sqrt(predicted.epistemic + predicted.aleatoric)[seen]
        assert values["coverage"] == pytest.approx(inside.mean())
    else:
        assert values["accuracy"] == pytest.approx((np.abs(error) < 0.5).mean())
