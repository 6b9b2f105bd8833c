"""What the votes of a stored model tell, from what the store has of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testbed.results.vote_metrics import vote_metrics


def evaluation(label_sets: NDArray[np.int32] | None, **changes: Any) -> Any:
    facts = {
        "model_spec": {"classify": {"type": "Votes", "sigma": 0.25, "num_samples": 100}},
        "num_draws": 1,
        "n": 2,
        "logits": lambda draw: np.array([[0, 100, 0], [100, 0, 0]], np.float32),
        "in_setting": lambda logits: logits,
        "targets": lambda: np.array([0, 0]),
        "label_sets": lambda: label_sets,
    }
    return SimpleNamespace(**facts | changes)


def test_every_right_class_of_an_image_counts() -> None:
    def accuracy(label_sets: NDArray[np.int32] | None) -> float | None:
        return next(value.value for value in vote_metrics(evaluation(label_sets)) if value.name == "smoothed_accuracy")

    assert accuracy(None) == 50
    assert accuracy(np.array([[0, 1], [0, -1]], np.int32)) == 100


def test_a_model_that_does_not_vote_has_none() -> None:
    assert vote_metrics(evaluation(None, model_spec={"classify": {"type": "ImageNetColumns"}})) == []
    assert vote_metrics(evaluation(None, model_spec={})) == []
