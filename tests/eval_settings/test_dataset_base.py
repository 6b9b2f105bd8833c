"""What a data set declares is checked when it is declared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from eval_settings.dataset_base import Dataset
from testbed.errors import DefinitionError


def test_samples_are_pixels_and_no_noise_level_is_listed_unless_declared() -> None:
    dataset = Dataset(name="d", path=Path("d"))
    assert (dataset.domain, dataset.noise_levels) == ("pixels", ())


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"domain": "points"}, r"Dataset 'd': domain is 'points'\. Use 'pixels' or 'numbers'\."),
        (
            {"noise_levels": (0.1, 0)},
            r"Dataset 'd': noise level 0\. It must be a positive number of at most six digits\.",
        ),
        ({"noise_levels": (float("inf"),)}, "noise level inf"),
        ({"noise_levels": (0.004012795259015489,)}, "noise level 0.004012795259015489"),
    ],
)
def test_a_domain_or_level_that_names_cannot_bear_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Dataset(name="d", path=Path("d"), **fields)
