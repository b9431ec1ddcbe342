import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from onepass.decisions import ContextualBandit, DecisionLog, LoggedDecision

COLUMNS = ["id", "timestamp", "context", "action", "arm", "position", "pscore", "reward"]


def _played(names: tuple[Any, ...] = ("red", "green", "blue"), n: int = 12) -> DecisionLog:
    """A log of single choices and rankings."""
    rng = np.random.default_rng(0)
    bandit = ContextualBandit(names, n_features=2)
    bandit.log = DecisionLog()
    for i in range(n):
        choice = bandit.choose(rng.normal(size=2), n=1 + i % 2, time=1.7e9 + 0.25 * i)
        for arm in choice.arms:
            bandit.reward(choice.id, float(rng.random() < 0.5), arm)
    return bandit.log


def _table(**changed: Any) -> Any:
    columns = {"context": [[0.5, 1.0], [0.0, -1.0], [2.0, 3.0]], "action": [0, 1, 0], "reward": [1, 0, 1]}
    columns |= {"pscore": [0.5, 0.25, 1.0], **changed}
    return pa.table({name: column for name, column in columns.items() if column is not None})


def _same(a: DecisionLog, b: DecisionLog) -> bool:
    return bool(a.to_table().equals(b.to_table()))


def test_a_bandit_writes_down_what_it_decided_how_probable_it_was_and_what_came_of_it() -> None:
    bandit = ContextualBandit(["a", "b"], n_features=2)
    bandit.log = DecisionLog()
    choice = bandit.choose([0.5, -1.0], 2, time=5.0)
    bandit.reward(choice.id, 1.0)
    bandit.reward(choice.id, 0.0, choice.arms[1])
    first, second = bandit.log
    assert first[:2] == (choice.id, 5.0)
    assert first.context.tolist() == [0.5, -1.0]
    assert first[3:] == (choice.arm, bandit.arms.index(choice.arm), 0, 0.5, 1.0)
    assert second[3:] == (choice.arms[1], bandit.arms.index(choice.arms[1]), 1, None, 0.0)


@pytest.mark.parametrize("names", [("red", "green", "blue"), (7, 11, -3)])
def test_a_log_is_the_same_after_writing_and_reading(tmp_path: Path, names: tuple[Any, ...]) -> None:
    log = _played(names)
    log.write(tmp_path / "log.parquet")
    assert os.listdir(tmp_path) == ["log.parquet"]
    found = DecisionLog.read(tmp_path / "log.parquet")
    assert _same(found, log)
    assert {type(arm) for arm in found.arms} == {type(names[0])}
    assert _same(DecisionLog.read(log.to_table()), log)
    assert log.to_table().column_names == COLUMNS
    for one in log:  # a log that was read goes on
        found.append(one)
    assert len(found) == 2 * len(log)
    assert _same(found[len(log) :], log)


def test_an_empty_log_can_be_written_too(tmp_path: Path) -> None:
    DecisionLog().write(tmp_path / "log.parquet")
    found = DecisionLog.read(str(tmp_path / "log.parquet"))
    assert len(found) == 0
    for one in _played():
        found.append(one)
    assert _same(found, _played())


def test_other_libraries_read_the_file_and_their_tables_are_read(tmp_path: Path) -> None:
    log = _played()
    path = tmp_path / "log.parquet"
    log.write(path)
    assert pq.read_schema(path).field("context").type == pa.list_(pa.float64(), 2)
    for frame in (pl.read_parquet(path), pd.read_parquet(path)):
        assert list(frame.columns) == COLUMNS
        assert list(frame["arm"]) == log.arms.tolist()
        np.testing.assert_array_equal(np.stack(list(frame["context"])), log.contexts)
        assert _same(DecisionLog.read(frame), log)
    moments = pd.read_parquet(path)["timestamp"]
    assert moments.iloc[1] == pd.Timestamp(log.times[1], unit="s", tz="UTC")
    assert int(pd.read_parquet(path)["pscore"].isna().sum()) == int((log.positions > 0).sum()) > 0


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log.parquet"
    _played().write(path)
    before = path.read_bytes()

    def fail(table: Any, file: Any) -> None:
        file.write(b"half")
        raise OSError("the disk is full")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(OSError, match="full"):
        _played(n=20).write(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["log.parquet"]


def test_somebody_elses_log_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    text = (
        "timestamp,item_id,position,click,propensity_score,user_feature_0,user_feature_1\n"
        "2019-11-24 00:00:01.500000+00:00,14,0,1,0.0125,0.5,1\n"
        "2019-11-24 00:00:02.250000+00:00,3,1,0,0.5,-2.0,0\n"
    )
    (tmp_path / "log.csv").write_text(text)
    log = DecisionLog.read(
        pa.csv.read_csv(tmp_path / "log.csv"),
        contexts=["user_feature_0", "user_feature_1"],
        action="item_id",
        reward="click",
        pscore="propensity_score",
    )
    assert log.contexts.tolist() == [[0.5, 1.0], [-2.0, 0.0]]
    assert log.arms.tolist() == [14, 3]
    assert log.actions.tolist() == [14, 3]
    assert log.positions.tolist() == [0, 1]
    assert log.propensities.tolist() == [0.0125, 0.5]
    assert log.rewards.tolist() == [1.0, 0.0]
    assert log.times.tolist() == [pd.Timestamp("2019-11-24T00:00:01.5Z").timestamp(), 1574553602.25]
    with pytest.raises(ValueError, match=r"not a valid Parquet file.*pyarrow\.csv"):
        DecisionLog.read(tmp_path / "log.csv")


def test_names_alone_are_numbered_in_their_order_and_columns_that_are_not_needed_may_be_missing() -> None:
    log = DecisionLog.read(_table(action=None, arm=["b", "a", "b"], other=[1, 2, 3]))
    assert log.arms.tolist() == ["b", "a", "b"]
    assert log.actions.tolist() == [1, 0, 1]
    assert log.ids.tolist() == ["0", "1", "2"]
    assert np.isnan(log.times).all()
    assert not log.positions.any()
    category = pa.array(["x", "y", "x"]).dictionary_encode()
    assert DecisionLog.read(_table(action=category)).arms.tolist() == ["x", "y", "x"]
    flags = DecisionLog.read(_table(reward=[True, False, True], pscore=[None, None, None]))
    assert flags.rewards.tolist() == [1.0, 0.0, 1.0]
    assert np.isnan(flags.propensities).all()
    assert np.isnan(DecisionLog.read(_table(pscore=None), pscore=None).propensities).all()
    assert not DecisionLog.read(_table(position=[1, 2, 3]), position=None).positions.any()
    assert DecisionLog.read(_table(timestamp=[1.5, 2, 3])).times.tolist() == [1.5, 2.0, 3.0]


def test_the_feedback_of_the_open_bandit_pipeline_is_taken_as_it_is() -> None:
    feedback = {
        "n_rounds": 3,
        "n_actions": 2,
        "context": np.array([[0.5, 1.0], [0.0, -1.0], [2.0, 3.0]]),
        "action_context": np.eye(2),
        "action": np.array([0, 1, 0]),
        "position": None,
        "reward": np.array([1, 0, 1]),
        "pscore": np.array([0.5, 0.25, 1.0]),
    }
    assert _same(DecisionLog.from_bandit_feedback(feedback)[1:], DecisionLog.read(_table())[1:])
    with pytest.raises(ValueError, match=r"the same length.*'reward': 2"):
        DecisionLog.from_bandit_feedback({**feedback, "reward": np.array([1, 0])})
    with pytest.raises(ValueError, match="no column 'context'"):
        DecisionLog.from_bandit_feedback({name: own for name, own in feedback.items() if name != "context"})


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"context": None}, "no column 'context', but 'action', 'reward', 'pscore'; name another one with contexts"),
        ({"action": None}, "no column 'action'.*name another one with action"),
        ({"reward": None}, "no column 'reward'.*name another one with reward"),
        ({"pscore": None}, "no column 'pscore' with propensities.*pscore=None"),
        ({"context": [[0.5, 1.0], [0.0], [2.0, 3.0]]}, "'context' must hold lists of one length.*1 in row 1"),
        ({"context": [[0.5, 1.0], None, [2.0, 3.0]]}, "'context' is null in row 1"),
        ({"context": [[0.5, 1.0], [0.0, None], [2.0, 3.0]]}, "'context' is null in row 1"),
        ({"context": [[0.5, 1.0], [0.0, 1.0], [2.0, np.nan]]}, "'context' must be finite, got nan in row 2"),
        ({"context": [1.0, 2.0, 3.0]}, r"'context' must hold lists of numbers, got double.*contexts=\['context'\]"),
        ({"context": [["a"], ["b"], ["c"]]}, "'context' must hold numbers, got string"),
        ({"context": [[], [], []]}, "empty lists|hold numbers"),
        ({"reward": [1.0, np.nan, 0.0]}, "'reward' must be finite, got nan in row 1"),
        ({"reward": [1.0, 0.0, None]}, "'reward' is null in row 2"),
        ({"reward": ["1", "0", "1"]}, "'reward' must hold numbers, got string"),
        ({"pscore": [0.5, 0.0, 1.0]}, r"'pscore' must be a probability in \(0, 1\], or null, got 0 in row 1"),
        ({"pscore": [0.5, 0.5, 1.5]}, "'pscore' must be a probability.*got 1.5 in row 2"),
        ({"pscore": [np.nan, 0.5, 1.0]}, "'pscore' must be a probability.*got nan in row 0"),
        ({"action": [0, None, 1]}, "'action' is null in row 1"),
        ({"action": [0.5, 1.0, 2.0]}, "'action' must hold numbers or names of arms, got double"),
        ({"arm": ["a", "b", "a"], "action": ["a", "b", "a"]}, "'action' must hold the numbers of arms"),
        ({"position": [0, -1, 0]}, "'position' must be 0 .* got -1 in row 1"),
        ({"position": ["top", "top", "top"]}, "'position' must hold whole numbers"),
        ({"timestamp": ["now", "then", "later"]}, "'timestamp' must hold moments"),
        ({"id": ["a", None, "c"]}, "'id' is null in row 1"),
    ],
)
def test_what_is_wrong_with_a_log_is_told_by_column_and_row(changed: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        DecisionLog.read(_table(**changed))


def test_what_is_no_log_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no log .*nowhere\.parquet"):
        DecisionLog.read(tmp_path / "nowhere.parquet")
    with pytest.raises(TypeError, match="path of a Parquet file or a table, got int"):
        DecisionLog.read(3)
    with pytest.raises(ValueError, match="no column 'where'"):
        DecisionLog.read(_table(), position="where")
    with pytest.raises(TypeError, match="slice"):
        DecisionLog.read(_table())[0]
    mixed = DecisionLog()
    for arm in ("a", 1):
        mixed.append(LoggedDecision("0", 0.0, np.zeros(1), arm, 0, 0, 0.5, 1.0))
    with pytest.raises(ValueError, match="strings and integers"):
        mixed.to_table()
    mixed.append(LoggedDecision("0", 0.0, np.zeros(2), "a", 0, 0, 0.5, 1.0))
    with pytest.raises(ValueError, match="the same length, got 2 after 1"):
        mixed.to_table()


def test_a_bandit_learns_a_log_as_it_would_have_learned_the_rewards(tmp_path: Path) -> None:
    log = _played()
    log.write(tmp_path / "log.parquet")
    played, learned = (ContextualBandit(["blue", "red", "green"], n_features=2) for _ in range(2))
    for one in log:
        played.learn(one.context, one.arm, one.reward)
    for source in (log, tmp_path / "log.parquet", log.to_table()):
        learned = ContextualBandit(["blue", "red", "green"], n_features=2).learn_log(source)
        np.testing.assert_allclose(learned.predict([1.0, 2.0]).mean, played.predict([1.0, 2.0]).mean, rtol=1e-10)
        assert learned.n_rewards == len(log)


def test_a_bandit_refuses_a_log_with_arms_that_it_does_not_have() -> None:
    bandit = ContextualBandit(["red", "blue"], n_features=2)
    with pytest.raises(ValueError, match=r"1 arms that this bandit does not have: 'green'.*add_arm.*'red', 'blue'"):
        bandit.learn_log(_played())
    assert bandit.n_rewards == 0


def test_contexts_of_a_log_are_standardised_where_that_is_asked_for() -> None:
    rng = np.random.default_rng(0)
    contexts, rewards = 1000.0 + 50.0 * rng.normal(size=(300, 1)), np.zeros(300)
    rewards[contexts[:, 0] > 1000.0] = 1.0
    bandit = ContextualBandit(["a"], n_features=1, standardize=True).learn(contexts, ["a"] * 300, rewards)
    low, high = bandit.predict([[900.0], [1100.0]]).reward_mean[:, 0]
    assert low < 0.1
    assert high > 0.9
