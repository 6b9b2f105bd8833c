"""The settings against the ImageNet Testbed's grid: its columns are their names, and its accuracies fit their sizes."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
from tests.testbed.data.test_published import GRID, needs_grid

from registry import registry
from testbed.data.published import TIMM_SETTINGS, read_published
from testbed.definitions import load_definitions

load_definitions()


@needs_grid
def test_every_column_is_a_setting_and_accuracies_are_whole_numbers_of_its_samples() -> None:
    accuracies = defaultdict(list)
    for one in read_published(GRID):
        if one.value is not None:
            accuracies[one.eval_setting].append(one.value)
    assert len(accuracies) == 213
    sizes = {name: registry.eval_setting(name).size for name in accuracies}
    sized = {name: size for name, size in sizes.items() if size is not None}
    assert len(sized) == 213 - 185 - 2, "all but corruptions and the sets with the frames around an anchor"
    for name, size in sized.items():
        right = np.array(accuracies[name]) / 100 * size
        assert np.abs(right - right.round()).max() < 0.01, name  # they are given to the precision of a float32


def test_what_timm_evaluates_are_settings_in_the_form_that_is_published() -> None:
    assert {registry.eval_setting(name).name for name in TIMM_SETTINGS.values()} == set(TIMM_SETTINGS.values())
    assert TIMM_SETTINGS["imagenetv2-matched-frequency"] == "imagenetv2-matched-frequency-format-val"
