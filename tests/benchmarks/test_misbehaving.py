from dataclasses import replace

import numpy as np
import pytest
from benchmarks.misbehaving import choices, long_run, moving, peers, prequential, robust, sources
from benchmarks.misbehaving.__main__ import PAGE, SECTIONS, page, read
from benchmarks.misbehaving.study import Outcome, Study, table

QUICK = Study({}, quick=True)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_measures_something_in_a_few_rows(name: str) -> None:
    found = SECTIONS[name].outcomes(QUICK)
    assert found
    assert all(np.isfinite(outcome.ours) for outcome in found)
    assert len(page({name: found})) > 1000


def test_the_table_says_who_is_better() -> None:
    outcomes = [Outcome("a", 0.12, 0.11, "a forest", None, "<= 0.11"), Outcome("b", 0.9, None, "", 0.854, ">= 0.854")]
    assert list(table(outcomes))[2:] == ["| a | 0.12 | 0.11 a forest |  |", "| b | 0.9 |  | 0.854 |"]
    assert [outcome.is_missed for outcome in outcomes] == [True, False]
    assert outcomes[0].ratio == pytest.approx(0.12 / 0.11)
    assert outcomes[1].ratio is None  # an accuracy


def test_the_page_is_that_of_the_stored_outcomes() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(read(), prequential.notes())


def test_the_sentence_at_the_top_names_who_is_better() -> None:
    found = read()
    before = page(found)
    assert "Bananas" in before.split("![")[0]
    streams = [replace(one, ours=0.01) if one.task.startswith("Bananas") else one for one in found["streams"]]
    assert "Bananas" not in page({**found, "streams": streams}).split("![")[0]


def test_settings_are_left_out_by_name() -> None:
    study = Study({"outliers": 0.05, "drift": "auto"})
    assert study.without("outliers") == study.only("drift") == {"drift": "auto"}
    assert study.without() == study.settings


def test_rows_are_standardised_by_those_before_them_and_themselves() -> None:
    X = np.random.default_rng(0).normal(1e6, 3.0, (50, 2))
    X[:, 1] = 7.0
    found = sources.standardized(X)
    expected = [(X[k, 0] - X[: k + 1, 0].mean()) / (X[: k + 1, 0].std() or 1.0) for k in range(50)]
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-8)
    assert not found[:, 1].any()


def test_targets_are_standardised_by_those_before_them_alone() -> None:
    y = np.random.default_rng(0).normal(40.0, 2.0, 30)
    stream = sources.Stream("s", np.zeros((30, 1)), y, 0).with_standardized_targets()
    np.testing.assert_allclose(stream.targets[20], (y[20] - y[:20].mean()) / y[:20].std())
    np.testing.assert_allclose(stream.targets * stream.scale + stream.centre, y)


def test_a_tenth_of_the_targets_is_wild_and_the_rest_as_it_was() -> None:
    data = np.random.default_rng(0).normal(size=(1000, 3))
    run = robust.published_run(data, 0)
    assert len(run.X) == 900
    assert run.X[:100].min(axis=0).tolist() == [0.0] * 2
    np.testing.assert_allclose(run.X[:100].max(axis=0), 1.0)
    wild = run.corrupted != run.clean
    assert 0.07 < wild.mean() < 0.13
    assert set(run.corrupted[wild]) == {-50.0, 50.0}


def test_a_sign_flips_and_a_column_of_zeros_leaves_the_rest_alone() -> None:
    task = moving.Moving(moving.gaussian, moving.flipping((3.0, 1.0), 10), 40)
    with_zeros = moving.Moving(moving.gaussian, moving.flipping((3.0, 1.0), 10), 40, zeros=1)
    assert task.weights(np.random.default_rng(0), 40)[[9, 10, 19, 20], 0].tolist() == [3.0, -3.0, -3.0, 3.0]
    (X, y), (wider, same) = task.draw(0), with_zeros.draw(0)
    np.testing.assert_array_equal(wider, np.column_stack([X, np.zeros(40)]))
    np.testing.assert_array_equal(same, y)


def test_weights_walk_with_the_same_deviation_all_the_way() -> None:
    rng = np.random.default_rng(0)
    walks = np.stack([moving.walking(1, 2.0, 20.0)(rng, 60)[:, 0] for _ in range(2000)])
    np.testing.assert_allclose(walks.std(axis=0), 2.0, rtol=0.1)
    assert np.corrcoef(walks[:, 30], walks[:, 31])[0, 1] == pytest.approx(0.95, abs=0.01)


def test_the_filter_that_knows_is_ahead_of_the_best_constant() -> None:
    parts = list(long_run.wandering(2000, 0))
    truth = np.concatenate([part.truth for part in parts])
    assert long_run.oracle_error(iter(parts)) < 0.2 * truth.std()


def test_others_are_scored_at_their_best() -> None:
    stream = next(one for one in sources.streams(None) if one.name == "Phishing").first(120)
    found = peers.measure(stream)
    rivals = ("ARFClassifier", "HoeffdingAdaptiveTreeClassifier", "SGD, tuned on the way")
    for measure, better in (("log-loss", min), ("accuracy", max)):
        value, name = peers.best(found, measure)
        assert value == better(found[one][measure] for one in rivals) == found[name][measure]
    # The last label is certain and often wrong: it is charged for a tenth of doubt, not for none.
    wrong = (np.append(0.0, stream.y[:-1]) != stream.y).mean()
    doubtful = -wrong * np.log(0.05) - (1.0 - wrong) * np.log(0.95)
    assert found[peers.LAST] == pytest.approx({"accuracy": 1.0 - wrong, "log-loss": doubtful})


def test_every_stream_has_scores_of_others() -> None:
    kept = peers.read()
    names = {*sources.RECORDED, *(stream.name for stream in sources.streams(None))}
    assert set(kept) == names


def test_the_tasks_for_choices_can_be_measured() -> None:
    _, truth = choices.regression("sine", 0)
    assert truth.std() == pytest.approx(1.0)
    wild = np.abs(choices.contaminated(truth, "many spikes", 0) - truth) > 5 * choices.NOISE
    assert 0.1 < wild.mean() < 0.25
    assert choices.believed(8.0, {"forgetting": 0.9}) > 0
