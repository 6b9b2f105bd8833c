"""What may be wrong with a definition: one thing at a time, and only what its images allow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.model_base import Model, StandardNormalization, StandardTransform
from testbed.doctor.hypotheses import Hypothesis, ImageFacts, View, hypotheses, written

IMAGENET = StandardNormalization((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
PHOTOS = ImageFacts(height=224, width=224, mean=(0.4, 0.4, 0.4), std=(0.3, 0.3, 0.3), may_resize=True,
                    source_size=None, is_square=False)  # fmt: skip


def _model(**fields: object) -> Model:
    model = Model(name="m", transform=StandardTransform(256, 224), classifier_loader=object, eval_batch_size=1)
    return replace(model, **fields)  # type: ignore[arg-type]


def _found(model: Model, facts: ImageFacts = PHOTOS) -> list[Hypothesis]:
    return hypotheses(View(model=model), facts)


def test_each_changes_one_thing() -> None:
    model = _model(normalization=IMAGENET)
    for one in _found(model):
        changed = one.view.model
        differences = [
            changed.normalization != model.normalization,
            changed.transform is not model.transform,
            one.view.arrangement != "as is",
        ]
        assert sum(differences) == 1, one


def test_bgr_and_rgb_are_each_others_fault_with_the_mean_of_each_colour_kept() -> None:
    bgr = StandardNormalization((0.406, 0.456, 0.485), (0.225, 0.224, 0.229), "BGR")
    for given, wanted in ((IMAGENET, bgr), (bgr, IMAGENET)):
        found = [one for one in _found(_model(normalization=given)) if one.fault == "channel order"]
        assert [one.view.model.normalization for one in found] == [wanted]


def test_the_normalization_that_is_given_is_no_alternative_to_itself() -> None:
    given = [one.view.model.normalization for one in _found(_model(normalization=IMAGENET))
             if "normalization" in one.fault]  # fmt: skip
    assert IMAGENET not in given
    assert None in given
    missing = [one for one in _found(_model()) if one.fault == "missing normalization"]
    assert IMAGENET in [one.view.model.normalization for one in missing]


def test_a_mean_in_units_of_255_is_brought_to_1() -> None:
    given = StandardNormalization((127.5,) * 3, (51.0,) * 3)
    first = next(one for one in _found(_model(normalization=given)) if one.fault == "pixel range")
    found = first.view.model.normalization
    assert found is not None
    assert list(found.mean) == [0.5] * 3
    assert list(found.std) == pytest.approx([0.2] * 3)


def test_grey_images_have_no_order_of_channels_and_oblong_ones_are_neither_turned_nor_cropped() -> None:
    grey = replace(PHOTOS, mean=(0.3,), std=(0.3,), height=20)
    faults = {one.fault for one in _found(_model(), grey)}
    assert not faults & {"channel order", "transposed images", "crop or size"}
    assert "inverted pixels" in faults


def test_sizes_near_the_one_that_is_given_are_tried_with_its_crop() -> None:
    transforms = [one.view.model.transform for one in _found(_model()) if one.fault == "crop or size"]
    assert StandardTransform(224, 224) in transforms  # the whole image
    assert StandardTransform(293, 256) in transforms
    assert StandardTransform(585, 512) not in transforms


def test_a_normalization_is_written_as_a_definition_has_it() -> None:
    text = written(StandardNormalization((0.5,), (1 / 255,), "BGR"))
    assert text == "StandardNormalization(mean=(0.5,), std=(0.003922,), input_space='BGR')"
    assert written(None) == "None"
