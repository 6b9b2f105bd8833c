"""What the votes of a stored model tell beside its accuracies: how often it abstains, and what is certified."""

from __future__ import annotations

import numpy as np

from testbed.errors import TestbedError
from testbed.metrics.smoothing import smoothing_metrics
from testbed.records import MetricValue
from testbed.store.evaluation import Evaluation


def vote_metrics(evaluation: Evaluation) -> list[MetricValue]:
    """Abstention, smoothed and certified accuracy of a smoothed model; none of a model that does not vote."""
    meaning = evaluation.model_spec.get("classify") or {}
    if meaning.get("type") != "Votes":
        return []
    try:
        votes = np.stack([evaluation.in_setting(evaluation.logits(draw)) for draw in range(evaluation.num_draws)])
        return smoothing_metrics(
            votes,
            evaluation.targets(),
            sigma=meaning["sigma"],
            num_samples=meaning["num_samples"],
            label_sets=evaluation.label_sets(),
        )
    except TestbedError as error:  # the votes were not kept
        return [MetricValue(name="smoothed_accuracy", value=None, n=evaluation.n, reason=str(error))]
