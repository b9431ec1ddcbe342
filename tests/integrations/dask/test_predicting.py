"""Predictions of frames and arrays that are computed when they are needed."""

import dask.array as da
import dask.dataframe as dd
import numpy as np

import onepass
from onepass import BayesianNetwork, BayesianPerceptron, distributed
from tests.helpers.dask_rows import D, frame, rows


def test_predictions_are_lazy_and_like_the_models_own() -> None:
    X, y = rows()
    model = BayesianPerceptron(D).learn(X, y)
    wanted = model.predict(X)
    lazy = distributed.predict(model, da.from_array(X, chunks=(1500, 2)))
    assert isinstance(lazy.mean, da.Array)
    for part, other in zip(lazy, wanted.moments, strict=True):
        np.testing.assert_allclose(part.compute(scheduler="sync"), other, rtol=1e-12)
    table = distributed.predict(model, dd.from_pandas(frame(), npartitions=3), "y")
    assert isinstance(table, dd.DataFrame)
    computed = table.compute(scheduler="sync")
    assert list(computed.columns) == ["mean", "epistemic", "pre_mean", "pre_var", "aleatoric"]
    np.testing.assert_allclose(computed["epistemic"], wanted.epistemic, rtol=1e-12)
    assert computed.index.equals(frame().index)
    classes = BayesianNetwork(D, hidden=(), n_outputs=3, observation="categorical")
    means = distributed.predict(classes, da.from_array(X, chunks=(1500, 3)))
    np.testing.assert_allclose(means.compute(scheduler="sync"), classes.predict(X).mean)
    regressor = onepass.BayesianPerceptronRegressor(standardize=False).fit(X, y)
    flat = distributed.predict(regressor, da.from_array(X, chunks=(1500, 3)))
    np.testing.assert_allclose(flat.compute(scheduler="sync"), regressor.predict(X))
