"""What a report says of the noise is what the noise was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from tests.laboratory import lab

from testbed.records import MetricValue, Shift
from testbed.report import SHARED_DRAWS, WIDTH, noise_words, own_metrics_lines, report_text
from testbed.results import Run, result_of

__all__ = ["lab"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"family": "uniform-linf", "norm": "linf", "epsilon": 0.1}, "uniform L∞ noise within 0.1000"),
        (
            {"family": "uniform-l2-shared", "norm": "l2", "epsilon": 0.5},
            "uniform L2 noise, the same offsets for all samples, within 0.5000",
        ),
        ({"family": "uniform-l0", "norm": "l0", "epsilon": 0.125}, "uniform noise on 12.5 % of the values"),
        ({"family": "gaussian", "epsilon": 0.08}, "Gaussian noise of standard deviation 0.0800"),
    ],
)
def test_noise_in_words(fields: dict[str, Any], words: str) -> None:
    assert noise_words(Shift(name="noise", clean_eval_setting="clean", **fields)) == words


def _text(lab: Any, losses: dict[str, list[int]]) -> str:
    """The report on a model that is right on all eight samples when clean, and on these under noise."""
    pairs = [lab.pair("net", [1] * 8, [right], setting=setting) for setting, right in losses.items()]
    results = [result_of([Run(seed=0, evaluation=shifted, clean=clean)]) for shifted, clean in pairs]
    separation = {"min_distance": 0.2, "splits": ["test"], "num_points": 8}
    return " ".join(report_text(results, {name: separation for name in losses if "mscr" in name}).split())


def test_the_sentence_is_about_the_separation_based_noise_that_costs_most(lab: Any) -> None:
    """Levels of two norms cannot be compared: that of L2 is larger here, and costs less."""
    one, two = [1] * 7 + [0], [1] * 6 + [0] * 2
    assert "net loses 25.00 %" in _text(lab, {"toy-mscr-l2": one, "toy-mscr-linf": two})
    assert "net loses 12.50 %" in _text(lab, {"toy-noise-linf-0.05": two, "toy-mscr-l2": one})


def test_noise_that_all_samples_share_is_said_to_be_of_these_draws(lab: Any) -> None:
    right = [1] * 7 + [0]
    assert SHARED_DRAWS in _text(lab, {"toy-mscr-linf-shared": right})
    assert SHARED_DRAWS not in _text(lab, {"toy-mscr-linf": right})


def test_noise_that_clipping_shortens_is_said_to_be_shorter(lab: Any) -> None:
    right = [1] * 7 + [0]
    assert "shorter than its level" in _text(lab, {"toy-mscr-l2": right})
    assert "shorter than its level" not in _text(lab, {"toy-mscr-linf": right})


def test_what_a_setting_measures_itself_stands_in_a_line_of_its_own() -> None:
    """Else the accuracy of all frames would be taken for that of anchors with all their frames."""
    values = [MetricValue(name="top1", value=80.0, n=5), MetricValue(name="pm10", value=50.0, n=2, ci_low=1, ci_high=9)]
    evaluation = SimpleNamespace(id=1, status="complete", setting="videos_pm10", metrics=lambda: values)
    result: Any = SimpleNamespace(name="net", evaluation=evaluation, runs=[SimpleNamespace(evaluation=evaluation)])
    assert own_metrics_lines([result]) == ["net on videos_pm10: pm10 50.00 [1.00, 9.00] (n = 2)"]
    values[1:] *= 9
    assert max(map(len, own_metrics_lines([result])[0].splitlines())) <= WIDTH
    del values[1:]
    assert own_metrics_lines([result]) == []
