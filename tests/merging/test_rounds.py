import copy
from typing import Any

import numpy as np
import pytest
from benchmarks.merging import distance, distances, problems
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from onepass import BayesianPerceptron, merge
from onepass.merging import Merging, Rounds
from tests.helpers.merging import close, labelled_rows, learned_apart, linear_rows


def sampled_evidence(X: np.ndarray, y: np.ndarray, q: BayesianPerceptron) -> float:
    """Log evidence of labels under unit priors, by importance sampling from a wider ``q``."""
    proposal = multivariate_normal(q.mean, 1.3 * q.cov)
    weights = proposal.rvs(4000, random_state=np.random.default_rng(0))
    scores = (weights[:, 1:] @ X.T + weights[:, :1]) * (2 * y - 1)
    logs = -np.logaddexp(0, -scores).sum(axis=1) + multivariate_normal(np.zeros(5)).logpdf(weights)
    return float(logsumexp(logs - proposal.logpdf(weights)) - np.log(4000))


def test_the_merged_evidence_is_that_of_all_rows() -> None:
    """By brute force; the sum of the shards' own is far off, even the sequential one less close than rounds."""
    X, y = labelled_rows(2000)
    prior = BayesianPerceptron(4)
    models = learned_apart(prior, X, y, 10)
    rounds = Rounds(prior, 10)
    pieces = list(zip(np.array_split(X, 10), np.array_split(y, 10), strict=True))
    for _ in range(3):
        starts = zip(rounds.starts(), pieces, strict=True)
        merged = rounds.take([start and start.learn(*piece) for start, piece in starts])
    truth = sampled_evidence(X, y, merged)
    assert abs(merged.log_evidence - truth) < 0.3
    assert abs(copy.deepcopy(prior).learn(X, y).log_evidence - truth) > 1.0
    alone = abs(sum(model.log_evidence for model in models) - truth)
    assert abs(merge(prior, models).log_evidence - truth) < 0.5 * alone


def test_rounds_settle_the_learned_noise() -> None:
    X, y = linear_rows(16_000)
    prior = BayesianPerceptron(4, "linear", noise="learn")
    for shards in (1, 40):
        rounds = Rounds(prior, shards)
        pieces = list(zip(np.array_split(X, shards), np.array_split(y, shards), strict=True))
        for _ in range(3):
            starts = zip(rounds.starts(), pieces, strict=True)
            merged = rounds.take([start and start.learn(*piece) for start, piece in starts])
        assert merged.noise == pytest.approx(0.25, rel=0.05)
        assert merged.n_seen == 16_000


@pytest.mark.parametrize("problem", problems(16_000), ids=lambda problem: problem.name)
def test_two_rounds_come_as_close_as_the_order_of_rows_allows(problem: Any) -> None:
    whole = problem.fresh().learn(problem.X, problem.y)
    backwards = distance(problem.fresh().learn(problem.X[::-1], problem.y[::-1]), whole)
    first, second = distances(problem, whole, 16, 2)
    if problem.settings.get("activation") == "linear":
        assert second < 1e-9
    else:
        assert second < max(0.5 * first, 0.1)
        assert second < 4.0 * backwards


def test_a_cavity_that_is_no_gaussian_keeps_the_old_site() -> None:
    """A site with more precision than all sites together, as a negative one elsewhere makes it, can't be taken out."""
    prior = BayesianPerceptron(1, "linear", noise=1.0, bias=False)
    merging = Merging(prior)
    strong = merging.site(prior, copy.deepcopy(prior).learn([[2.0]], [1.0]))
    half = merging.nothing().toward(strong, 0.5)
    assert merging.cavity(half, strong) is None  # precision 1 + 2 - 4 < 0
    rounds = Rounds(prior, 2)
    rounds._sites, rounds._total = [strong, half - strong], half
    before = rounds.merged()
    starts = rounds.starts()
    assert starts[0] is None
    assert starts[1] is not None
    close(rounds.take([None, None]), before, 1e-12)


def test_rounds_are_taken_one_after_the_other() -> None:
    rounds = Rounds(BayesianPerceptron(4), 2)
    with pytest.raises(RuntimeError, match="call that first"):
        rounds.take([None, None])
    rounds.starts()
    with pytest.raises(ValueError, match="each of 2 shards, got 1"):
        rounds.take([None])
