"""Bandits from the command line: nothing is lost or learned twice, whatever is repeated, killed or run at once."""

import io
import json
import signal
import sqlite3
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import onepass
from onepass.cli.main import COMMANDS
from onepass.decisions import ContextualBandit, open_bandit, stored
from onepass.decisions.stored import find_decision
from onepass.events import EventStore
from onepass.files.checkpoint import to_bytes
from tests.cli.conftest import Done, Run
from tests.helpers.commands import COMMAND, read_until

ARMS = ("red", "green", "blue")


@pytest.fixture
def file(run: Run, tmp_path: Path) -> Path:
    """A new bandit of three arms and contexts of two numbers."""
    path = tmp_path / "headline.bandit"
    assert run("bandit", "create", path, "--arms", "red,green,blue", "--features", 2).code == 0
    return path


@pytest.fixture
def piped(run: Run, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command with lines of JSON on its standard input; texts are taken as they are."""

    def call(lines: list[Any], *arguments: object) -> Done:
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return run(*arguments)

    return call


def decided(run: Run, file: Path, *more: object, context: str = "0.5,-1") -> dict[str, Any]:
    done = run("decide", file, "--context", context, "--json", *more)
    assert done.code == 0, done.err
    (found,) = done.events
    return found


def shown(run: Run, file: Path) -> dict[str, Any]:
    (facts,) = run("bandit", "show", file, "--json").events
    return facts


def test_from_the_first_decision_to_the_last(run: Run, file: Path) -> None:
    first, second = decided(run, file), decided(run, file, "--id", "visit 17")
    assert (first["id"], second["id"]) == ("0", "visit 17")
    assert run("reward", file, "0", 1).out == "learned 1 reward\n"
    assert run("bandit", "expire", file, "--after", "1h").out.startswith("expired: 0 decisions; 1 still")
    done = run("bandit", "expire", file, "--after", "0s", "--default", 0, "--json")
    assert done.events == [{"event": "done", "expired": 1, "pending": 0}]
    facts = shown(run, file)
    assert (facts["decisions"], facts["pending"], facts["rewards"]) == (2, 0, 2)
    words = run("bandit", "show", file).out
    assert "arms:          red, green, blue\n" in words
    assert "decisions:     2, of which 0 wait for a reward\n" in words
    assert decided(run, file)["means"][first["arm"]] != 0.5


def test_a_decision_is_that_of_the_same_bandit_in_python(run: Run, file: Path) -> None:
    bandit = ContextualBandit(ARMS, 2)
    for _ in range(3):
        choice = bandit.choose([0.5, -1.0])
        bandit.reward(choice.id, 1.0)
        found = decided(run, file)
        run("reward", file, found["id"], 1)
        assert (found["id"], found["arm"], found["arms"]) == (choice.id, choice.arm, list(choice.arms))
        assert found["propensity"] == found["propensities"][choice.arm] == choice.propensity
        assert found["propensities"] == dict(zip(ARMS, choice.propensities, strict=True))
        assert found["means"] == dict(zip(ARMS, choice.means, strict=True))
        assert found["stds"] == dict(zip(ARMS, choice.stds, strict=True))


def test_words_for_people(run: Run, file: Path) -> None:
    lines = run("decide", file, "--context", "0.5,-1", "-n", 2, "--arms", "red,blue").out.splitlines()
    assert lines[0] == "id:            0"
    assert set(lines[1].split(":")[1].replace(",", "").split()) == {"red", "blue"}
    assert lines[3:] == [f"  {arm + ':':<12} propensity 0.5, expected reward 0.5 ± 0.27" for arm in ("red", "blue")]


def test_a_decision_and_a_reward_may_be_repeated(run: Run, file: Path) -> None:
    first = decided(run, file, "--id", "a")
    again = decided(run, file, "--id", "a")
    assert again == first | {"propensities": None, "means": None, "stds": None, "again": True}
    assert run("reward", file, "a", 1).out == "learned 1 reward\n"
    belief = decided(run, file)["means"]
    assert run("reward", file, "a", 1) == Done(0, "already known: the same reward came before\n", "")
    assert decided(run, file)["means"] == belief
    assert decided(run, file, "--id", "a")["arm"] == first["arm"]  # when it waits no longer, too
    for context, more, words in (
        ("1,1", (), "in another context, 0.5, -1;"),
        ("0.5,-1", ("-n", 2), "of 1 arm, not of 2;"),
        ("0.5,-1", ("--arms", "red,blue"), "among other arms;"),
    ):
        done = run("decide", file, "--context", context, "--id", "a", *more)
        assert done.code == 1
        assert f"the id 'a' belongs to another decision, {words}" in done.err


def test_a_decision_among_some_arms_may_be_repeated_however_their_names_are_given(
    piped: Any, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "numbers.bandit"
    with EventStore(path) as store:
        open_bandit(store, "bandit", lambda: ContextualBandit([6, 7, 8], 2))
    first = decided(run, path, "--id", "a", "--arms", "6,7")
    line = {"id": "a", "context": [0.5, -1], "arms": [6, 7]}
    (again,) = piped([line], "decide", path).events
    assert (again["arm"], again["again"]) == (first["arm"], True)
    run("bandit", "remove-arm", path, "6")
    assert decided(run, path, "--id", "a", "--arms", "7,6")["again"]  # in any order
    for other in ([6, 8], [6], None):
        done = piped([{**line, "arms": other}], "decide", path)
        assert done.code == 3
        assert "the id 'a' belongs to another decision" in done.events[0]["error"]


def test_an_id_that_is_a_number_takes_no_number_away(run: Run, file: Path) -> None:
    decided(run, file, "--id", "1")
    assert [decided(run, file)["id"] for _ in range(2)] == ["1-1", "2"]


def test_requests_and_rewards_in_lines(piped: Any, run: Run, file: Path) -> None:
    asked = [{"id": 7, "context": [1, 0]}, {"context": [0, 1.5], "n": 2}, "", {"id": "x", "context": [0, 0]}]
    done = piped(asked, "decide", file, "--arms", "red,blue")
    assert done.code == 0, done.err
    assert [(found["id"], len(found["arms"])) for found in done.events] == [("7", 1), ("1", 2), ("x", 1)]
    assert all(set(found["means"]) == {"red", "blue"} for found in done.events)
    two = done.events[1]["arms"]
    rewards = [
        {"id": 7, "reward": 1},
        {"id": "1", "reward": 0, "arm": two[1]},
        {"id": "1", "reward": 1, "arm": two[0]},
        {"id": "1", "reward": 1},
        {"id": "x", "reward": True},
    ]
    done = piped(rewards, "reward", file, "--json")
    assert [found["result"] for found in done.events] == ["learned", "learned", "learned", "known", "learned"]
    assert piped(rewards, "reward", file) == Done(0, "learned 0 rewards, 5 already known\n", "")
    assert shown(run, file)["rewards"] == 4


def test_a_bad_line_is_answered_and_the_rest_goes_on(piped: Any, file: Path) -> None:
    lines = ["rubbish", [1], {"id": 3}, {"context": [1]}, {"context": "1,2"}, {"context": [1, None]}]
    lines += [{"context": [1, float("nan")]}, {"context": [1, 10**400]}, {"context": [1, 2], "arms": {"new": [1]}}]
    lines += [
        {"context": [1, 2], "n": 0},
        {"context": [1, 2], "n": True},
        {"context": [1, 2], "arms": ["pink"]},
        {"id": "", "context": [1, 2]},
    ]
    done = piped([*lines, {"context": [1, 2]}], "decide", file)
    assert done.code == 3
    *bad, good = done.events
    assert [found["id"] for found in bad] == [None, None, 3, *[None] * 9, ""]
    assert [f"rejected: line {i}: {found['error']}" for i, found in enumerate(bad, 1)] == done.err.splitlines()
    assert "the context has 1 number, and this bandit's contexts have 2" in bad[3]["error"]
    assert "there is no arm 'pink'" in bad[11]["error"]
    assert good["id"] == "0"
    done = piped([{"id": "0", "reward": "1"}, {"id": "0", "reward": 2}, {"id": "0", "reward": 1}], "reward", file)
    assert (done.code, done.out) == (3, "learned 1 reward\n")
    assert 'line 1: a reward must be a number, got "1"' in done.err
    assert "line 2: a reward must be 0 or 1" in done.err


def test_rewards_that_no_decision_waits_for(piped: Any, run: Run, file: Path) -> None:
    decided(run, file)
    lines = [{"id": "lost", "reward": 1}, {"id": "0", "reward": 1}, {"id": "gone", "reward": 0}]
    done = piped(lines, "reward", file)
    assert (done.code, done.out) == (1, "learned 1 reward, 2 that no decision waits for\n")
    assert "unknown: no decision waits for 'lost'\n" in done.err
    words = "no decision with the id 'lost', 'gone' waits for a reward: it was never made here, or has expired; learned"
    assert f"{words} 1 reward." in done.err
    assert shown(run, file)["unknown"] == 0
    assert piped(lines, "reward", file, "--unknown", "count").code == 0
    assert run("reward", file, "lost", 1, "--unknown", "count").code == 0
    assert shown(run, file)["unknown"] == 3
    decided(run, file)
    run("bandit", "expire", file, "--after", "0s")
    assert run("reward", file, "1", 1).code == 1


def test_a_reward_leaves_the_settings_of_the_bandit_alone(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "made.bandit"
    with EventStore(path) as store:
        open_bandit(store, "bandit", lambda: ContextualBandit(ARMS, 2, unknown_rewards="count"))
    monkeypatch.setattr(stored, "_SNAPSHOT_EVERY", 1)  # a snapshot has the settings, too
    assert run("reward", path, decided(run, path)["id"], 1, "--unknown", "error").code == 0
    assert run("reward", path, "lost", 1).code == 0
    assert shown(run, path)["unknown"] == 1


def test_arms_come_and_go(run: Run, file: Path) -> None:
    assert run("bandit", "pause", file, "green").out == "arms:          red, green, blue\npaused:        green\n"
    assert set(decided(run, file)["means"]) == {"red", "blue"}
    run("bandit", "resume", file, "green")
    run("bandit", "remove-arm", file, "red")
    assert run("bandit", "add-arm", file, "violet", "--json").events[0]["arms"] == ["green", "blue", "violet"]
    assert set(decided(run, file)["means"]) == {"green", "blue", "violet"}
    for command in ("pause", "remove-arm", "resume"):
        assert (
            "there is no arm 'red'; the arms are 'green', 'blue', 'violet'" in run("bandit", command, file, "red").err
        )


def test_a_reward_for_an_arm_that_was_not_chosen_changes_nothing(run: Run, file: Path) -> None:
    chosen = decided(run, file)["arm"]
    other = next(arm for arm in ARMS if arm != chosen)
    for _ in range(2):
        done = run("reward", file, "0", 1, "--arm", other)
        words = f"onepass: arm must be one that decision '0' chose, {chosen!r}, got {other!r}.\n"
        assert (done.code, done.err) == (1, words)
        run("reward", file, "0", 1)  # which closes the decision
    assert shown(run, file)["rewards"] == 1


def test_a_bandit_goes_to_python_and_back(run: Run, tmp_path: Path) -> None:
    saved, file, again = tmp_path / "saved.onepass", tmp_path / "numbers.bandit", tmp_path / "again.onepass"
    bandit = ContextualBandit([1, 2, 3], 2, observation="gaussian", reward_range=(-5, 5), unknown_rewards="count")
    first = bandit.choose([1.0, 2.0])
    onepass.save(bandit, saved)
    assert run("bandit", "create", file, "--from", saved).code == 0
    assert run("reward", file, first.id, -2.5, "--arm", str(first.arm)).code == 0  # neither is -2.5 an option
    assert decided(run, file, "--arms", "2")["arm"] == 2
    assert run("bandit", "pause", file, "3").code == 0
    assert run("reward", file, "lost", 1).code == 0  # as it was made
    assert run("bandit", "save", file, again).out == f"model: {again}\n"
    bandit.reward(first.id, -2.5)
    assert np.array_equal(onepass.load(again).predict([1.0, 2.0]), bandit.predict([1.0, 2.0]))
    assert onepass.load(again).pending == ("1",)
    assert "MODEL" in run("bandit", "save", file, file).err


def test_arms_with_features_from_a_table(piped: Any, run: Run, tmp_path: Path) -> None:
    table, file = tmp_path / "arms.csv", tmp_path / "price.bandit"
    table.write_text("\ufeffname,size,price\n'big, red',1,2\n".replace("'", '"') + "small,0.5,1e-1\n", encoding="utf-8")
    assert run("bandit", "create", file, "--arms-from", table, "--features", 2).code == 0
    assert run("bandit", "add-arm", file, "mid").code == 1
    assert run("bandit", "add-arm", file, "mid", "--arm-features", "-0.5,1").code == 0
    assert set(decided(run, file)["means"]) == {"big, red", "small", "mid"}
    done = piped([{"context": [1, 1], "arms": {"new": [1, 1], "newer": [0, 1]}}], "decide", file)
    assert set(done.events[0]["means"]) == {"new", "newer"}
    assert run("reward", file, done.events[0]["id"], 1, "--arm", done.events[0]["arm"]).code == 0
    for text, words in (("a,1\nb,x\n", "'b' must have 1 numbers"), ("a\nb\na\n", "the arm 'a' twice"), ("", "no arms")):
        table.write_text(text)
        assert words in run("bandit", "create", tmp_path / "bad.bandit", "--arms-from", table, "--features", 2).err
    table.write_text("a\nb\n")
    assert run("bandit", "create", tmp_path / "names.bandit", "--arms-from", table, "--features", 2).code == 0
    assert shown(run, tmp_path / "names.bandit")["arms"] == ["a", "b"]


def test_several_bandits_in_one_file(run: Run, file: Path) -> None:
    assert run("bandit", "create", file, "--arms", "a,b", "--features", 1, "--name", "other").code == 0
    assert set(decided(run, file, "--name", "other", context="1")["means"]) == {"a", "b"}
    assert shown(run, file)["decisions"] == 0
    done = run("bandit", "show", file, "--name", "third")
    assert (done.code, done.err) == (
        1,
        f"onepass: {file} holds no bandit 'third'; it holds 'bandit', 'other' (--name).\n",
    )


def test_the_settings_of_a_new_bandit(run: Run, tmp_path: Path) -> None:
    given = ["--observation", "gaussian", "--reward-range", "0,100", "--policy", "ucb", "--hidden", "5", "--seed", 3]
    given += ["--prior-scale", 0.5, "--drift", "auto", "--outliers", 0.1, "--standardize"]
    done = run("bandit", "create", tmp_path / "a.bandit", "--arms", "a,b", "--features", 2, *given)
    assert done.code == 0, done.err
    facts = shown(run, tmp_path / "a.bandit")
    assert facts["reward_range"] == [0.0, 100.0]
    assert (facts["policy"]["name"], facts["hidden"], facts["seed"], facts["prior_scale"]) == ("ucb", [5], 3, 0.5)
    assert (facts["outliers"], facts["standardize"], len(facts["drift"])) == (0.1, True, 6)
    for words in ("roughly from 0 to 100", "ucb (level 0.84)", "hidden layers of 5 units", "2 numbers, standardized"):
        assert words in done.out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["decide", "{file}", "--context", "1"], 1, "the context has 1 number, and this bandit's contexts have 2."),
        (["decide", "{file}", "--context", "1,inf"], 1, "the context must have finite numbers, got 1.0, inf."),
        (["decide", "{file}", "--context", "1,two"], 2, "'1,two' is not a list of numbers"),
        (["decide", "{file}", "--context", "1,2", "--arms", "pink"], 1, "there is no arm 'pink'"),
        (["decide", "{file}", "--context", "1,2", "-n", "4"], 1, "n must be at most 3, the number of arms, got 4"),
        (["decide", "{file}", "--context", "1,2", "--id", ""], 2, "--id must not be empty"),
        (["decide", "{file}", "--id", "a"], 2, "--id must not be empty and needs --context"),
        (["decide", "{none}", "--context", "1,2"], 1, "none.bandit does not exist; 'onepass bandit create "),
        (["decide", "{text}", "--context", "1,2"], 1, "the file is not an event store"),
        (["decide", "{other}", "--context", "1,2"], 1, "the file is a database of another program"),
        (["decide", "{price}", "--context", "1,2"], 1, "holds no bandit 'bandit'; it holds 'price' (--name)."),
        (["decide", "{price}", "--context", "1,2", "--name", "price"], 1, "is a BayesianPerceptron, not a bandit"),
        (["reward", "{file}", "0"], 2, "ID needs a VALUE"),
        (["reward", "{file}", "0", "much"], 2, "'much' is not a number"),
        (["reward", "{file}", "--arm", "red"], 2, "--arm needs ID and VALUE"),
        (["reward", "{none}", "0", "1"], 1, "does not exist; 'onepass bandit create "),
        (["bandit", "create", "{file}", "--arms", "a", "--features", "1"], 1, "already has a bandit 'bandit'"),
        (["bandit", "create", "{none}", "--features", "1"], 2, "Give the names of the arms"),
        (["bandit", "create", "{none}", "--arms", "a"], 2, "--features is needed"),
        (["bandit", "create", "{none}", "--arms", "a,a", "--features", "1"], 1, "there is an arm 'a' already"),
        (["bandit", "create", "{none}", "--from", "{text}", "--features", "1"], 2, "so --features can't be given"),
        (["bandit", "create", "{none}", "--from", "{text}"], 1, "not a model file of onepass"),
        (["bandit", "create", "{text}", "--arms", "a", "--features", "1"], 1, "the file is not an event store"),
        (["bandit", "expire", "{file}", "--after", "1"], 2, "'1' is not a time such as 30s"),
        (["bandit", "expire", "{file}", "--after", "1d", "--default", "2"], 1, "a reward must be 0 or 1"),
    ],
)
def test_wrong_use_is_answered_in_one_sentence(
    run: Run, file: Path, tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    paths = {name: tmp_path / f"{name}.bandit" for name in ("none", "text", "other", "price")}
    paths["text"].write_text("{} this is a text, and long enough to be no beginning of anything " * 20)
    connection = sqlite3.connect(paths["other"])
    connection.execute("CREATE TABLE own (x)")
    connection.close()
    with EventStore(paths["price"]) as store:
        store.save_snapshot("price", 0, to_bytes(onepass.BayesianPerceptron(1)))
    done = run(*(argument.format(file=file, **paths) for argument in arguments))
    assert done.code == code, done.err
    assert words in done.err
    assert done.err.startswith("onepass: ")
    assert len(done.err.strip().splitlines()) == 1
    assert done.out == ""
    assert not paths["none"].exists()
    assert shown(run, file)["decisions"] == 0


def test_a_file_that_is_locked(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onepass.events.EventStore", partial(EventStore, timeout=0.05))
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    done = run("decide", file, "--context", "1,2")
    connection.close()
    assert (done.code, done.err) == (
        1,
        f"onepass: {file}: another process kept the file locked for too long; nothing was written.\n",
    )


def start(*arguments: object) -> "subprocess.Popen[bytes]":
    pipe = subprocess.PIPE
    return subprocess.Popen([*COMMAND, *map(str, arguments)], stdin=pipe, stdout=pipe, stderr=pipe)


def test_two_processes_at_once_lose_nothing(run: Run, file: Path) -> None:
    n = 60
    lines = "".join(json.dumps({"context": [i % 3, 1]}) + "\n" for i in range(n)).encode()
    both = [start("decide", file) for _ in range(2)]
    answers: list[dict[str, Any]] = []
    for process in both:  # neither has all its lines before the other has begun
        assert process.stdin is not None
        process.stdin.write(lines)
        process.stdin.flush()
    for process in both:
        out, err = process.communicate()
        assert (process.returncode, err) == (0, b"")
        answers += [json.loads(line) for line in out.splitlines()]
    assert sorted(int(found["id"]) for found in answers) == list(range(2 * n))
    rewards = "".join(json.dumps({"id": found["id"], "reward": 1}) + "\n" for found in answers).encode()
    both = [start("reward", file) for _ in range(2)]  # both tell all of them
    for process in both:
        assert process.communicate(rewards)[1] == b""
    facts = shown(run, file)
    assert (facts["decisions"], facts["rewards"], facts["pending"]) == (2 * n, 2 * n, 0)
    bandit = ContextualBandit(ARMS, 2)
    with EventStore(file) as store:  # the same rewards in their order give the same bandit
        for event in store.events("bandit", kinds=["reward"]):
            for key, arm, value in event.payload["rewards"]:
                decision = find_decision(store, "bandit", key)
                assert decision is not None
                bandit.learn(decision.context, arm, value)
        found = open_bandit(store, "bandit").predict([1.0, -1.0])
    assert np.array_equal(found, bandit.predict([1.0, -1.0]))


def test_what_was_answered_survives_a_kill(run: Run, file: Path) -> None:
    process = start("decide", file)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"id": "a", "context": [1, 2]}\n')  # and the pipe stays open: the answer comes at once
    process.stdin.flush()
    answer = json.loads(read_until(process.stdout, "\n"))  # type: ignore[arg-type]
    process.kill()
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert decided(run, file, "--id", "a", context="1,2")["arm"] == answer["arm"]
    assert run("reward", file, "a", 1).out == "learned 1 reward\n"
    assert shown(run, file)["pending"] == 0


def test_a_decision_imports_little() -> None:
    code = "import sys\nimport onepass.decisions.stored\nprint(*{'sklearn', 'pyarrow', 'pandas'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_every_help_has_an_example(run: Run) -> None:
    assert {"bandit", "decide", "reward"} <= set(COMMANDS)
    commands = [["bandit", name] for name in ("create", "show", "expire", "add-arm", "pause", "resume", "remove-arm")]
    for command in [["decide"], ["reward"], ["bandit", "save"], *commands]:
        done = run(*command, "--help")
        assert done.code == 0
        assert f"\n  onepass {' '.join(command)} " in done.out
    assert "A contextual bandit chooses one of several arms" in run("bandit", "--help").out


def test_snapshots_of_two_processes_get_along(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_SNAPSHOT_EVERY", 1)
    with EventStore(file) as store, EventStore(file) as other_store:
        bandit, other = open_bandit(store, "bandit"), open_bandit(other_store, "bandit")

        def overtaken(model: ContextualBandit) -> bytes:
            if model is bandit:
                other.choose([1.0, 2.0])  # saves a later snapshot while this one is made
            return to_bytes(model)

        monkeypatch.setattr(stored, "to_bytes", overtaken)
        assert bandit.choose([1.0, 2.0]).id == "0"
        snapshot = store.latest_snapshot("bandit")
        assert snapshot is not None
        assert snapshot.after == 2
        assert open_bandit(store, "bandit").pending == ("0", "1")


def test_a_field_that_nobody_knows_is_told(piped: Any, file: Path) -> None:
    done = piped([{"context": [1, 1], "arm": "red"}], "decide", file)
    assert done.code == 3
    assert "unknown fields 'arm'; allowed are 'context', 'id', 'n', 'arms'" in done.out
