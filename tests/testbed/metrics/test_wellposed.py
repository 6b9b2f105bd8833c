"""What a well-posed simulator would not do is found beyond chance, and told in a sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from testbed.metrics.corruption import Grid
from testbed.metrics.factors import Factors
from testbed.metrics.wellposed import Finding, Outputs, findings, guessing_rate, recoveries

N = 400
CLEAN = np.arange(N) < 300


def grid(**right: Any) -> Grid:
    """Cells by name and severity, as fog_1."""
    rows = {(name[:-2], int(name[-1])): np.atleast_2d(row).astype(float) for name, row in right.items()}
    return Grid(clean=np.atleast_2d(CLEAN).astype(float), cells=rows, num_draws=dict.fromkeys(rows, 1.0),
                factors=Factors())  # fmt: skip


def guess(whole: Grid, rate: float = 0.1) -> dict[Any, Outputs]:
    return dict.fromkeys(whole.cells, Outputs(guessing=rate))


def found_in(rate: float = 0.1, **right: Any) -> list[Finding]:
    """What is found where guessing is right at a rate."""
    whole = grid(**right)
    return findings(whole, guess(whole, rate))


def first(count: int) -> Any:
    return np.arange(N) < count


def test_guessing_is_one_over_classes_where_these_are_balanced() -> None:
    """Whatever a model answers: always the first class, or in turn."""
    targets, wrong = np.arange(40) % 4, np.ones(40, bool)
    assert guessing_rate(np.zeros(40, int), targets, wrong) == pytest.approx(1 / 4)
    assert guessing_rate(np.roll(targets, 3), targets, wrong) == pytest.approx(1 / 4)


def test_guessing_knows_the_frequencies_and_the_images_that_are_wrong() -> None:
    """Two thirds of the answers are class 0, and of the wrong images one is of class 0, two of class 1."""
    predictions = np.array([[0, 0, 0, 1, 1, 0]])
    targets, wrong = np.array([0, 1, 1, 0, 0, 0]), np.array([1, 1, 1, 0, 0, 0], bool)
    assert guessing_rate(predictions, targets, wrong) == pytest.approx(2 / 3 * 1 / 3 + 1 / 3 * 2 / 3)
    assert guessing_rate(predictions, targets, np.zeros(6, bool)) is None
    assert guessing_rate([-1, -1], [0, 1], [True, True]) == 0


def test_destroyed_images_recover_as_by_guessing() -> None:
    rng = np.random.default_rng(0)
    targets, predictions = rng.integers(0, 10, N), rng.integers(0, 10, N)
    whole = grid(fog_5=predictions == targets)
    rate = guessing_rate(predictions, targets, ~CLEAN)
    outputs = {("fog", 5): Outputs(guessing=rate)}
    found = recoveries(whole, outputs)[("fog", 5)]
    assert found.ci_low < found.detail["guessing"] < found.ci_high
    assert findings(whole, outputs) == []


def test_recovery_above_guessing_is_found() -> None:
    right = first(360) & (np.arange(N) > 70)
    (found,) = found_in(fog_1=right)
    assert (found.kind, found.corruption, found.severities) == ("recovers", "fog", (1,))
    assert found.sentence == (
        "fog at severity 1: of the images wrong when clean 60.0 % (guessing: 10.0 %) are right, more than by guessing, "
        "so that A_c / A_cl is above A_rel_c."
    )
    assert found.values[0].value == 60
    assert found_in(0.55, fog_1=right) == []


def test_accuracy_above_clean_is_found_beyond_chance() -> None:
    assert [found.kind for found in found_in(0.5, fog_1=first(340))] == ["above clean"]
    assert found_in(0.5, fog_1=first(303)) == []
    (found,) = found_in(0.5, fog_1=first(340), fog_2=first(340))
    words = (
        "fog at severity 1 and 2: accuracy is above clean accuracy beyond chance, by 10.00 and 10.00 percentage points"
    )
    assert found.sentence == f"{words}."


def test_outputs_that_are_those_of_the_clean_images_are_found() -> None:
    whole = grid(fog_1=CLEAN, fog_2=CLEAN, fog_3=first(290))
    outputs = guess(whole) | {("fog", 1): Outputs(guessing=0.1, identical="logits"),
                              ("fog", 2): Outputs(guessing=0.1, identical="predictions")}  # fmt: skip
    found = findings(whole, outputs)
    assert [(one.kind, one.severities) for one in found] == [("identical", (1,)), ("identical", (2,))]
    assert found[0].sentence.startswith("fog at severity 1: all logits are those of the clean images")
    assert found[1].sentence.startswith("fog at severity 2: all predictions are those of the clean images")


@pytest.mark.parametrize(("name", "is_known"), [("fog", False), ("snow", True), ("elastic_transform", True)])
def test_severities_that_are_not_ordered_are_found(name: str, is_known: bool) -> None:
    right = {f"{name}_1": first(280), f"{name}_2": first(200), f"{name}_3": first(260), f"{name}_4": first(262)}
    (found,) = found_in(**right)
    assert (found.kind, found.severities) == ("order", (3,))
    assert "accuracy rises with severity beyond chance, from 2 to 3 by 15.00 percentage points" in found.sentence
    assert ("known not to be ordered" in found.sentence) == is_known


def test_draws_of_a_rise_are_those_of_the_cell_that_has_fewer() -> None:
    """By 1.4 points in the mean over draws, of every image: clear where both are over 100 of them."""

    def kinds(mild: float, hard: float) -> list[str]:
        cells: dict[Any, Any] = {("fog", 1): np.full((1, N), 0.5), ("fog", 2): np.full((1, N), 0.514)}
        whole = Grid(clean=np.ones((1, N)), cells=cells, num_draws={("fog", 1): mild, ("fog", 2): hard},
                     factors=Factors())  # fmt: skip
        return [found.kind for found in findings(whole, guess(whole))]

    assert kinds(100, 100) == ["order"]
    assert kinds(1, 100) == kinds(100, 1) == []


def test_all_questions_together_are_wrong_no_more_often_than_said() -> None:
    """Severities that are alike, and recovery by guessing: at most 5 % of models are flagged."""
    rng, models = np.random.default_rng(2), 150
    chance = np.where(CLEAN, 0.9, 0.1)
    flagged = sum(
        bool(found_in(**{f"fog_{severity}": rng.random(N) < chance for severity in range(1, 6)})) for _ in range(models)
    )
    assert flagged <= 0.05 * models


def test_a_corruption_without_severities_has_none_in_its_sentence() -> None:
    whole = Grid(clean=np.ones((1, 4)), cells={("greyscale", None): np.ones((1, 4))},
                 num_draws={("greyscale", None): 1.0}, factors=Factors())  # fmt: skip
    (found,) = findings(whole, {("greyscale", None): Outputs(guessing=None, identical="logits")})
    assert found.sentence.startswith("greyscale: all logits")
