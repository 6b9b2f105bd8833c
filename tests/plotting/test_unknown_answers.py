"""Figures and reports of samples without labels: undefined with the reason, and nothing drawn of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plotting.drawing.corruption_table import Corruptions, corruptions
from plotting.effect_of_k import over_first_draws
from plotting.pages.data import read_site
from plotting.pages.model_page import model_page
from plotting.safety_case.corruptions import corruption_sections, stored_corruptions
from plotting.safety_case.evidence import evidence
from plotting.safety_case.left_open import left_open
from plotting.safety_case.statements import bounds_of, statement
from tests.laboratory import lab

from testbed.errors import TestbedError, UnknownNameError
from testbed.results import Run

__all__ = ["lab"]

RIGHT = np.array([1, 1, 1, 1, 1, 1, 0, 0], bool)
FOG = np.array([1, 1, 1, 0, 0, 0, 1, 0], bool)
NO_LABELS = "the samples have no labels"


def figure(lab: Any) -> Corruptions:
    return corruptions(lab.store, dataset=None, models=(), is_on_disk=False, variant="", metric="A_rel_c")


def test_a_figure_of_corruptions_says_which_have_no_labels(lab: Any) -> None:
    lab.pair("net", RIGHT, FOG, setting="toy-c.fog.1_in-memory")
    lab.has_labels = False
    lab.put("net", "toy-c.snow.1_in-memory", FOG)
    shown = figure(lab)
    assert set(shown.table["corruption"]) == {"fog"}
    assert shown.missing_sentence.endswith(f" Undefined on toy-c.snow.1_in-memory, because {NO_LABELS}.")


def test_without_any_labels_figures_are_refused_and_the_report_has_the_reason(lab: Any) -> None:
    lab.has_labels = False
    shifted, clean = lab.pair("net", RIGHT, FOG, setting="toy-c.fog.1_in-memory")
    with pytest.raises(TestbedError, match=NO_LABELS):
        figure(lab)
    found = evidence(lab.store, "net", None)
    assert bounds_of("loss", (Run(seed=0, evaluation=shifted, clean=clean),), 0.95).reason == NO_LABELS
    (section,) = corruption_sections(found, stored_corruptions(found, 0.95), 0.95)
    assert section.text == [f"Undefined on toy-c.fog.1_in-memory, because {NO_LABELS}."]
    assert NO_LABELS in statement(found, [], 0.95).leading[0]
    assert not any("Classes without an image" in str(point) for point in left_open(found, [], []).points)


def test_the_effect_of_draws_is_not_drawn_from_answers_that_nobody_knows(lab: Any) -> None:
    lab.has_labels = False
    shifted, clean = lab.pair("net", RIGHT, np.stack([FOG, RIGHT]))
    stored: Any = type("Stored", (), {
        "models": ["net"], "dataset": "toy", "require_separation": lambda self: 0.1,
        "runs": {("net", 0.1): [Run(seed=0, evaluation=shifted, clean=clean)]},
    })()  # fmt: skip
    with pytest.raises(TestbedError, match=f"net on toy are undefined, because {NO_LABELS}"):
        over_first_draws(stored)


def test_the_site_has_no_number_of_answers_that_nobody_knows(lab: Any) -> None:
    lab.pair("net", RIGHT, FOG)
    lab.has_labels = False
    lab.put("net", "toy-c.fog.1_in-memory", FOG)
    site = read_site(lab.store)
    (entry,) = site.entries
    page = model_page(site, entry)
    assert page.notes == [f"Undefined on toy-c.fog.1_in-memory, because {NO_LABELS}."]
    assert [row[0].text for row in page.noise.rows] == ["toy-mscr-linf"]
    with pytest.raises(UnknownNameError, match=NO_LABELS):
        read_site(lab.store, settings=("toy-c.*",))
