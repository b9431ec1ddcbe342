import copy

import numpy as np
import pytest

from onepass import BayesianPerceptron, merge
from onepass.merging import Merging
from tests.helpers.merging import close, labelled_rows, learned_apart


def test_a_group_sites_take_each_other_back() -> None:
    X, y = labelled_rows(200)
    prior = BayesianPerceptron(4)
    merging = Merging(prior)
    one, other = (merging.site(prior, model) for model in learned_apart(prior, X, y, 2))
    close(merging.merged(one + other - other), merging.merged(one), 1e-9)
    close(merging.merged(merging.nothing()), prior, 1e-12)
    assert one.rows == 100
    # Precision, its product with the mean, evidence and rows, the noise and its weight, rows set aside, and sums.
    assert one.nbytes == 8 * (25 + 5 + 2 + 2 + 1 + 4)


def test_a_cavity_is_what_the_other_shards_say() -> None:
    X, y = labelled_rows(300)
    prior = BayesianPerceptron(4)
    models = learned_apart(prior, X, y, 3)
    merging = Merging(prior)
    sites = [merging.site(prior, model) for model in models]
    others = merge(prior, models[1:])
    cavity = merging.cavity(sites[0] + sites[1] + sites[2], sites[0])
    assert cavity is not None
    np.testing.assert_allclose(cavity.mean, others.mean, rtol=1e-9)
    np.testing.assert_allclose(cavity.cov, others.cov, rtol=1e-9, atol=1e-12)


def test_sites_that_sum_to_no_gaussian_are_taken_in_part() -> None:
    prior = BayesianPerceptron(1, "linear", noise=1.0, bias=False).learn([[0.0]], [0.0])  # a row that says nothing
    merging = Merging(prior)
    nothing, site = merging.nothing(), merging.site(prior, copy.deepcopy(prior).learn([[2.0]], [1.0]))
    assert merging.step_size(nothing, site) == 1.0
    negative = nothing - site
    assert merging.step_size(nothing, negative) == 0.125  # 1 - 4 t > 0, and t = 1/4 leaves nothing
    part = nothing.toward(negative, 0.125)
    assert merging.merged(part).cov == pytest.approx(2.0)
    assert part.rows == negative.rows
    with pytest.raises(ValueError, match="not positive definite"):
        merging.merged(negative)
