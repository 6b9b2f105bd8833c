"""The sentence on common corruptions says what was kept, over what, and where least."""

from __future__ import annotations

from typing import Any

import pytest
from tests.laboratory import lab

from testbed.corruption_words import _source
from testbed.metrics.corruption import COMMON
from testbed.report import report_text
from testbed.results import Run, result_of

__all__ = ["lab"]

EIGHT = [1] * 8


def _text(lab: Any, cells: dict[str, list[int]], *, model: str = "net", clean: list[int] = EIGHT) -> str:
    """The report on a model that is right on these of eight samples when clean, and under each setting."""
    pairs = [lab.pair(model, clean, right, setting=setting) for setting, right in cells.items()]
    results = [result_of([Run(seed=0, evaluation=shifted, clean=parent)]) for shifted, parent in pairs]
    return " ".join(report_text(results, {}).split())


def _right(count: int) -> list[int]:
    return [1] * count + [0] * (8 - count)


def test_what_is_kept_is_summed_over_corruptions_and_severities(lab: Any) -> None:
    """(6 + 4 + 8) of 3 x 8, where each model has its own sentence."""
    cells = {"toy-c.fog.1_in-memory": 6, "toy-c.fog.2_in-memory": 4, "toy-c.snow.2_in-memory": 8}
    text = _text(lab, {name: _right(count) for name, count in cells.items()})
    assert "net keeps 75.00 % of the images that it classifies right when clean" in text
    assert "(n = 8), under fog, snow at severities 1, 2 on 8 samples of toy, simulated" in text
    assert "; the least, 50.00 %, under fog at severity 2; not tested:" in text


def test_images_wrong_when_clean_do_not_count(lab: Any) -> None:
    text = _text(lab, {"toy-c.fog.3_in-memory": [1, 0, 0, 0, 1, 1, 1, 1]}, clean=_right(4))
    assert "net keeps 25.00 %" in text
    assert "(n = 4), under fog at severity 3 on 8 samples of toy, simulated; not tested" in text


def test_simulated_and_published_images_have_a_sentence_each(lab: Any) -> None:
    cells = {"toy-c.fog.3_in-memory": _right(6), "toy-c.fog.3_on-disk-resized": _right(2)}
    text = _text(lab, cells)
    assert "net keeps 75.00 %" in text
    assert "net keeps 25.00 %" in text
    assert "of toy, as published, resized; not tested" in text


def test_fitted_models_are_counted(lab: Any) -> None:
    seeds = [{"fit_seed": seed, "noise_seed": seed} for seed in (0, 1, 2)]
    pairs = [lab.pair("net", EIGHT, _right(count), setting="toy-c.fog.3_in-memory", **seed)
             for count, seed in zip((5, 6, 7), seeds, strict=True)]  # fmt: skip
    runs = [Run(seed=seed, evaluation=shifted, clean=clean) for seed, (shifted, clean) in enumerate(pairs)]
    text = " ".join(report_text([result_of(runs)], {}).split())
    assert "net keeps 75.00 %" in text
    assert "(n = 8, 3 fitted models), under fog" in text


def test_noise_has_the_sentence_of_its_own_beside_it(lab: Any) -> None:
    text = _text(lab, {"toy-noise-linf-0.05": _right(7), "toy-c.greyscale_in-memory": _right(8)})
    assert "net loses 12.50 %" in text
    assert "net keeps 100.00 %" in text
    assert "under greyscale on 8 samples" in text


def test_nothing_is_said_of_what_is_undefined_but_why(lab: Any) -> None:
    text = _text(lab, {"toy-c.fog.3_in-memory": _right(4)}, clean=[0] * 8)
    assert "net: what it keeps under fog at severity 3 on 8 samples of toy, simulated, is undefined, because no" in text


def test_where_the_15_are_complete_the_sentence_is_about_them(lab: Any) -> None:
    cells = {f"toy-c.{name}.3_in-memory": _right(6) for name in COMMON} | {"toy-c.saturate.3_in-memory": _right(0)}
    assert "net keeps 75.00 %" in (text := _text(lab, cells))
    assert "under the 15 common corruptions at severity 3 on 8 samples" in text


def test_many_corruptions_are_counted_and_severities_ranged(lab: Any) -> None:
    names = ("fog", "snow", "frost", "contrast")
    text = _text(lab, {f"toy-c.{name}.{level}_in-memory": EIGHT for name in names for level in (1, 2, 3)})
    assert "under 4 corruptions at severities 1 to 3 on" in text


@pytest.mark.parametrize(("family", "words"), [
    ("common-corruption", "simulated"),
    ("common-corruption-mnist28-jpeg85", "simulated, mnist28, jpeg85"),
    ("common-corruption-on-disk", "as published"),
    ("common-corruption-on-disk-resized", "as published, resized"),
    ("common-corruption-on-disk-c-bar", "as published, c-bar"),
    ("common-corruption-on-disk-c-bar-resized", "as published, c-bar, resized"),
])  # fmt: skip
def test_where_images_are_from_is_told_by_their_family(family: str, words: str) -> None:
    assert _source(family) == words
