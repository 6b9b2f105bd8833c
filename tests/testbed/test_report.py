"""What a report says of the noise is what the noise was."""

from __future__ import annotations

from typing import Any

import pytest

from testbed.records import Shift
from testbed.report import _noise_words


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
    assert _noise_words(Shift(name="noise", clean_eval_setting="clean", **fields)) == words
