"""MSCR, loss and recovery against worked examples, their identity, and where they are undefined."""

from __future__ import annotations

import numpy as np
import pytest

from testbed.errors import ShapeError
from testbed.metrics.comparison import compare, loss, mscr, recovery

# Ten images; right when clean, right under the shift, then MSCR, 100 - A_rel and q as fractions.
WORKED = {
    "no sample recovers": ("1111111100", "1111110000", -1 / 4, 1 / 4, 0),
    "one clean error recovers": ("1111111100", "1111110010", -1 / 8, 1 / 4, 1 / 2),
    "the shift helps": ("1111110000", "1111101110", 1 / 3, 1 / 6, 3 / 4),
    "the shift does nothing": ("1111100000", "1111100000", 0, 0, 0),
}


def bits(text: str) -> np.ndarray:
    return np.array([digit == "1" for digit in text])


@pytest.mark.parametrize("name", WORKED)
def test_worked_examples(name: str) -> None:
    clean, shifted, change, lost, recovered = WORKED[name]
    found = compare(bits(clean), bits(shifted))
    assert list(found) == ["mscr", "loss", "recovery"]
    values = [metric.value for metric in found.values()]
    assert values == pytest.approx([100 * change, 100 * lost, 100 * recovered], abs=1e-12)
    right = clean.count("1")
    assert [metric.n for metric in found.values()] == [10, right, 10 - right]
    for metric in found.values():
        assert metric.ci_low <= metric.value <= metric.ci_high
        assert metric.ci_low < metric.ci_high


def test_draws_are_averaged() -> None:
    clean = bits("1110")
    shifted = np.array([bits("1101"), bits("1000"), bits("1110"), bits("1100")])
    found = compare(clean[None], shifted)
    assert found["loss"].value == pytest.approx(100 * 4 / 12)
    assert found["recovery"].value == pytest.approx(100 * 1 / 4)
    assert found["mscr"].value == pytest.approx(100 * (9 / 16 - 3 / 4) / (3 / 4))
    assert found["loss"].detail == {"images_flipped": 2}
    assert found["recovery"].detail == {"images_flipped": 1}


@pytest.mark.parametrize("seed", range(20))
def test_accuracy_is_made_of_what_is_kept_and_what_is_recovered(seed: int) -> None:
    """A_eps = A_cl A_rel + (1 - A_cl) q."""
    rng = np.random.default_rng(seed)
    clean, shifted = rng.random(37) < 0.7, rng.random((10, 37)) < 0.6
    found = compare(clean, shifted)
    kept, recovered = 100 - found["loss"].value, found["recovery"].value
    assert shifted.mean() * 100 == pytest.approx(clean.mean() * kept + (1 - clean.mean()) * recovered, abs=1e-12)
    assert found["mscr"].value == pytest.approx(100 * (shifted.mean() / clean.mean() - 1), abs=1e-12)


def test_metrics_say_why_they_are_undefined() -> None:
    found = compare(bits("000"), bits("010"))
    assert found["mscr"].value is found["loss"].value is None
    assert found["mscr"].reason == found["loss"].reason == "no image is right when clean"
    assert found["recovery"].value == pytest.approx(100 / 3)
    none_wrong = recovery(bits("111"), bits("011"))
    assert (none_wrong.value, none_wrong.ci_low, none_wrong.n) == (None, None, 0)
    assert none_wrong.reason == "no image is wrong when clean"
    assert mscr([], []).reason == "no image is right when clean"


def test_no_flip_is_no_proof_of_no_loss() -> None:
    metric = loss(np.ones(353, bool), np.ones((10, 353), bool))
    assert (metric.value, metric.ci_low) == (0, 0)
    assert metric.ci_high == pytest.approx(100 * (1 - 0.025 ** (1 / 353)))
    change = mscr(np.ones(353, bool), np.ones((10, 353), bool))
    assert change.value == 0
    assert change.ci_low < 0 < change.ci_high


@pytest.mark.parametrize(
    ("clean", "shifted"),
    [(np.ones(3), np.ones(4)), (np.ones((2, 3)), np.ones((2, 3))), (np.ones(3), np.ones((0, 3))), (1, np.ones((1, 2)))],
)
def test_other_images_or_several_clean_draws_are_refused(clean: np.ndarray, shifted: np.ndarray) -> None:
    with pytest.raises(ShapeError, match="same images"):
        mscr(clean, shifted)


def test_one_sided_metrics_have_one_bound() -> None:
    clean, shifted = bits("1111111100"), bits("1111110010")
    upper = mscr(clean, shifted, side="lower")
    assert upper.ci_high is None
    assert upper.ci_low == pytest.approx(mscr(clean, shifted, confidence=0.9).ci_low)
    assert loss(clean, shifted, side="upper").ci_low == 0
