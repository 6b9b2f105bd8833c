"""Accuracy around anchors and flip rates, against numbers counted by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from testbed.errors import DataError
from testbed.metrics.frames import (
    anchored_id,
    flip_rate,
    frame_id,
    pm_k,
    sequences,
    split_frame_id,
    whole_sequences,
)
from testbed.metrics.intervals import clustered_proportion
from testbed.records import MetricValue


def test_ids_are_taken_apart_as_they_were_put_together() -> None:
    names = [anchored_id("a/x#1.jpg", 0), anchored_id("a/x#1.jpg", -10), frame_id("fog/7", 12)]
    assert names == ["a/x#1.jpg#+0", "a/x#1.jpg#-10", "fog/7#12"]
    assert [split_frame_id(name) for name in names] == [("a/x#1.jpg", 0), ("a/x#1.jpg", -10), ("fog/7", 12)]
    assert split_frame_id("a/x#1.jpg") is split_frame_id("test/17") is split_frame_id("#3") is None


def test_sequences_count_as_they_come_and_one_other_sample_makes_them_none() -> None:
    found = sequences(["b#0", "a#0", "b#1"])
    assert found is not None
    assert [part.tolist() for part in found] == [[0, 1, 0], [0, 0, 1]]
    assert sequences(["b#0", "a.png"]) is sequences(["a.png"]) is sequences([]) is None


# Four anchors: the first right with all its frames; the second right, a neighbour wrong; the third wrong itself; the
# fourth right and alone. The order of the samples does not matter.
ANCHORED = {
    "a#+0": 0, "a#-1": 0, "a#+10": 0, "b#+0": 0, "b#-4": 3, "b#+1": 0, "c#+0": 2, "c#+1": 0, "d#+0": 0,
}  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1])
def test_an_anchor_is_right_with_its_frames_where_all_of_them_are(seed: int) -> None:
    order = np.random.default_rng(seed).permutation(len(ANCHORED))
    names, ranks = np.array(list(ANCHORED))[order].tolist(), np.array(list(ANCHORED.values()))[order]
    found = pm_k(ranks, names)
    assert {name: (value.value, value.n) for name, value in found.items()} == {"pm0": (75.0, 4), "pm10": (50.0, 4)}
    exact = clustered_proportion([1, 1, 0, 1])
    assert (found["pm0"].ci_low, found["pm0"].ci_high) == (100 * exact.low, 100 * exact.high)
    assert {name: value.value for name, value in pm_k(ranks, names, k=3).items()} == {"pm0": 75.0, "pm3": 75.0}
    assert pm_k(ranks, names, k=0).keys() == {"pm0"}


def test_anchors_alone_have_no_frames_to_be_right_with() -> None:
    assert {name: value.value for name, value in pm_k([0, 1], ["a#+0", "b#+0"]).items()} == {"pm0": 50.0}


@pytest.mark.parametrize("names", [["a#+0", "a#+1", "b#-1"], ["a#+0", "a#+0", "b#+0"]])
def test_a_sequence_without_one_anchor_makes_it_undefined(names: list[str]) -> None:
    found = pm_k([0, 0, 0], names)
    assert [value.value for value in found.values()] == [None] * len(found)
    assert found["pm0"].reason == "1 of 2 sequences do not have their anchor frame once"


# x: 1 1 2 2 5 flips twice from frame to frame, and three times from the first; y: 3 4 3 4 3 flips four and two times.
SEQUENCES = [frame_id(name, frame) for name in "xy" for frame in range(5)]
PREDICTIONS = [1, 1, 2, 2, 5, 3, 4, 3, 4, 3]


@pytest.mark.parametrize(("reference", "rates"), [("previous", [2 / 4, 4 / 4]), ("first", [3 / 4, 2 / 4])])
def test_flips_are_counted_from_the_previous_or_the_first_frame(reference: Any, rates: list[float]) -> None:
    order = np.random.default_rng(2).permutation(10)
    names, predictions = [SEQUENCES[i] for i in order], np.array(PREDICTIONS)[order]
    value = flip_rate(predictions, names, reference)["flip_rate"]
    assert value.value == pytest.approx(100 * np.mean(rates), abs=1e-12)
    interval = clustered_proportion(sorted(rates), num_draws=4)
    assert (value.ci_low, value.ci_high, value.n) == (100 * interval.low, 100 * interval.high, 2)


def test_sequences_of_any_length_weigh_the_same() -> None:
    names = [frame_id("x", frame) for frame in range(2)] + [frame_id("y", frame) for frame in range(5)]
    found = flip_rate([1, 2, *[3] * 5], names)
    assert found["flip_rate"].value == 50.0


def test_a_frame_without_a_prediction_flips_and_so_does_the_one_after_it() -> None:
    names = [frame_id("x", frame) for frame in range(5)]
    value = flip_rate([1, -1, -1, 1, 1], names)["flip_rate"]
    assert value.value == 75.0
    assert value.detail["without_prediction"] == 2


@pytest.mark.parametrize("names", [["x#0", "x#2"], ["x#0", "x#0"], ["x#1", "x#2"], ["x#0", "y#0"]])
def test_a_sequence_that_lacks_frames_makes_flips_undefined(names: list[str]) -> None:
    value = flip_rate([0, 0], names)["flip_rate"]
    assert value.value is None
    assert "sequences lack frames" in value.reason


@pytest.mark.parametrize("function", [pm_k, flip_rate])
def test_samples_that_are_no_frames_are_named(function: Any) -> None:
    with pytest.raises(DataError, match=r"'a\.png' is no frame of a sequence"):
        function([0, 0], ["x#0", "a.png"])


def test_another_reference_is_refused() -> None:
    with pytest.raises(DataError, match="'previous' or the 'first'"):
        flip_rate([0, 0], ["x#0", "x#1"], "last")  # type: ignore[arg-type]


def test_the_interval_covers_a_known_rate_where_frames_of_a_sequence_agree() -> None:
    """Frames that flip all or not at all are one observation per sequence: twenty frames do not make it narrower."""
    chance = np.random.default_rng(7)
    names = [frame_id(str(sequence), frame) for sequence in range(40) for frame in range(21)]
    inside, widths = 0, []
    for _ in range(60):
        flips = chance.random(40) < 0.3
        predictions = np.where(flips[:, None], np.arange(21), 0).ravel()
        value: MetricValue = flip_rate(predictions, names)["flip_rate"]
        assert value.ci_low is not None
        assert value.ci_high is not None
        inside += value.ci_low <= 30 <= value.ci_high
        widths.append(value.ci_high - value.ci_low)
    assert inside >= 53
    assert min(widths) > 20


def test_a_limit_takes_whole_sequences_in_the_order_of_their_first_samples() -> None:
    names = ["a#0", "a#1", "b#0", "b#1", "c#0", "c#1"]
    picked = partial(whole_sequences, np.array([5, 0, 4, 2, 1, 3]), names)  # c, a, b

    def positions(limit: int) -> list[int]:
        found = picked(limit)
        assert found is not None
        return found.tolist()

    assert positions(1) == positions(2) == positions(3) == [4, 5]
    assert positions(4) == [0, 1, 4, 5]
    assert positions(6) == list(range(6))
    assert whole_sequences(np.arange(2), ["a", "b"], 1) is None
