"""A change is tried on the wrong images first, on no more than needed, and with the same result as on all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from models.model_base import Model
from testbed.doctor.asking import PIECE, Standard, ask
from testbed.doctor.evidence import least_images
from testbed.doctor.examination import examine
from testbed.doctor.finding import Truth
from testbed.doctor.hypotheses import Hypothesis, View
from testbed.doctor.telling import Telling
from testbed.metrics.steadiness import Tolerance

NUM_CLASSES = 10
TARGETS = np.arange(300) % NUM_CLASSES
MODEL = Model(name="m", transform=None, classifier_loader=object, eval_batch_size=1)
AS_DEFINED, CHANGED = View(model=MODEL), View(model=MODEL, arrangement="inverted")


def _outputs(right: np.ndarray) -> np.ndarray:
    return np.where(right, TARGETS[: len(right)], (TARGETS[: len(right)] + 1) % NUM_CLASSES)


NONE_AT_ALL = Tolerance(of_spread=0.0, of_size=0.0)


@dataclass
class Two:
    """A patient with an answer to each image as it is defined, and one under a change; counts what it is asked."""

    right: np.ndarray
    changed: np.ndarray
    asked: list[int] = field(default_factory=list)
    tolerance: Tolerance = NONE_AT_ALL
    view: View = AS_DEFINED

    @property
    def truth(self) -> Truth:
        return Truth(TARGETS[: len(self.right), None], tuple(map(str, range(NUM_CLASSES))))

    def hypotheses(self, view: View) -> list[Hypothesis]:
        changed = Hypothesis(fault="inverted pixels", words="w", change="c", fix="f", view=CHANGED)
        return [changed] if view == AS_DEFINED else []

    def logits(self, view: View, positions: Any = None, *, batch_size: int | None = None) -> np.ndarray:
        places = np.arange(len(self.right)) if positions is None else positions
        if view == CHANGED:
            self.asked.extend(map(int, places))
        right = self.changed if view == CHANGED else self.right
        return np.eye(NUM_CLASSES, dtype=np.float32)[_outputs(right)[places]]

    def evaluation_mode(self) -> bool:
        return False


def _ask(patient: Two) -> np.ndarray | None:
    standard = Standard(truth=patient.truth, outputs=_outputs(patient.right), before=patient.right, orders=(None,),
                        may_learn=False, num_tries=26)  # fmt: skip
    return ask(patient, CHANGED, standard, least_gain=0.03, advance=lambda count: None)


def test_answers_come_in_the_order_of_the_images() -> None:
    patient = Two(np.arange(300) % 4 > 0, np.ones(300, bool))
    assert np.array_equal(np.asarray(_ask(patient)).argmax(axis=1), TARGETS)
    assert sorted(patient.asked) == list(range(300))


def test_a_change_that_puts_too_few_of_the_wrong_images_right_is_asked_about_no_others() -> None:
    right = np.arange(300) >= 40
    patient = Two(right, right | (np.arange(300) % 5 == 0))  # 8 more are right, and 12 would count
    assert _ask(patient) is None
    assert set(patient.asked) == set(range(40))


def test_a_change_that_makes_too_many_wrong_is_given_up() -> None:
    patient = Two(np.arange(300) >= 40, np.arange(300) < 40)
    assert _ask(patient) is None
    assert len(patient.asked) == 40 + PIECE


def test_a_change_that_helps_with_none_of_the_first_wrong_images_is_given_up() -> None:
    """Had it put 12 of 60 right, none of the first 32 would be right in a case of a thousand."""
    right = np.arange(300) >= 60
    patient = Two(right, right)
    assert _ask(patient) is None
    assert patient.asked == list(range(2 * PIECE))


@pytest.mark.parametrize(("missing", "faults"), [(1, []), (0, ["inverted pixels"])])
def test_a_change_counts_as_if_all_images_had_been_asked_about(missing: int, faults: list[str]) -> None:
    right = np.arange(300) >= 45
    num_tries = examine(Two(right, right)).num_tries
    gained = np.arange(300) < least_images(300, num_tries=num_tries) - missing
    assert [one.fault for one in examine(Two(right, right | gained)).findings] == faults


def test_nothing_is_tried_where_nothing_could_be_told_from_chance() -> None:
    patient = Two(np.arange(100) >= 8, np.ones(100, bool))
    found = examine(patient)
    assert not patient.asked
    assert found.num_tries == 0
    assert found.num_needed > 8


def test_it_tells_what_it_is_at_and_how_far(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr("testbed.progress.monotonic", lambda: now[0])
    for is_quiet in (False, True):
        with Telling(total=600, is_quiet=is_quiet) as telling:
            with telling.part("change 1 of 2", total=300) as advance:
                advance(48)
            with telling.part("change 2 of 2", total=300) as advance:
                now[0] += 31
                advance(48)
    assert capsys.readouterr().err == "change 2 of 2, 348/600 samples (58 %), 3 per second, 81 s left\n"
