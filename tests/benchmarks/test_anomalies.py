"""Anomalies are where they are said to be, and scores of detectors agree with counting by hand."""

from itertools import pairwise

import numpy as np
import pytest
from benchmarks.anomalies import Event, Found, Series, alarms_of, inject, judge


def test_series_are_changed_only_where_events_say() -> None:
    y = np.random.default_rng(0).normal(size=900)
    one, events = inject(Series("a", (24,), y), np.random.default_rng(1))
    levels = [event.start for event in events if event.kind == "level"]
    changed = np.flatnonzero(one.y != y)
    expected = [np.arange(event.start, event.start + event.length) for event in events if event.kind != "level"]
    if levels:
        expected.append(np.arange(min(levels), 900))
    np.testing.assert_array_equal(changed, np.unique(np.concatenate(expected)))
    assert len(events) == 5
    assert all(a.start + a.length < b.start for a, b in pairwise(events))


def test_alarms_are_followed_by_quiet() -> None:
    score = np.zeros(60)
    score[[5, 10, 25, 50]] = 1.0
    assert np.flatnonzero(alarms_of(score, 0.5)).tolist() == [5, 50]


def test_events_and_false_alarms_are_counted() -> None:
    y = np.zeros(600)
    events = [Event("spike", 200, 1), Event("run", 300, 10), Event("level", 400, 5)]
    alarm = np.zeros(600, dtype=bool)
    alarm[[100, 203, 320, 500, 550]] = True  # warm-up, late but in time, aftermath of a run, false, false
    score = np.zeros(600)
    score[200], score[500] = 1.0, 2.0
    found = judge([(Series("a", (1,), y), events, Found(score, alarm))])
    assert (found["spike"], found["run"], found["level"]) == (1.0, 0.0, 0.0)
    assert found["precision"] == pytest.approx(1 / 3)
    assert found["recall"] == pytest.approx(1 / 3)
    assert found["f1"] == pytest.approx(1 / 3)
    assert found["ap"] == pytest.approx((1 / 16) * (1 / 2) + (15 / 16) * (16 / 450))
