"""A corruption's table row, and a corruption at a severity: what they refuse, and what identifies them."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import registry
from testbed.errors import DataError, DefinitionError, ShapeError
from testbed.perturbations.corruptions.builtin import CORRUPTIONS, VERSION
from testbed.perturbations.corruptions.corrupt import Corrupt
from testbed.perturbations.corruptions.corruption import Corruption, severities, usual_table
from testbed.randomness import SampleKeys


def keys(n: int) -> SampleKeys:
    return SampleKeys(seed=0, purpose="eval", dataset="toy", sample_indices=np.arange(n), draw=0)


def darken(images: torch.Tensor, *, factor: float, is_squared: bool = False) -> torch.Tensor:
    return images * (factor**2 if is_squared else factor)


def corruption(**changes: Any) -> Corruption:
    values: dict[str, Any] = {
        "name": "darken", "group": "digital", "function": darken, "options": {"is_squared": (False, True)},
        "parameters": {
            "cifar32": severities("factor", 0.9, 0.8, 0.7, 0.6, 0.5),
            "imagenet224": severities("factor", 0.5, 0.4, 0.3, 0.2, 0.1),
        },
    }  # fmt: skip
    return Corruption(**{**values, **changes})


def grey(side: int, value: float = 0.4, n: int = 2) -> torch.Tensor:
    return torch.full((n, 1, side, side), value)


@pytest.mark.parametrize(
    ("height", "width", "table"),
    [(8, 8, "cifar32"), (48, 300, "cifar32"), (49, 49, "tinyimagenet64"), (500, 128, "tinyimagenet64"),
     (129, 129, "imagenet224"), (1000, 700, "imagenet224")],
)  # fmt: skip
def test_parameters_go_by_the_shorter_side(height: int, width: int, table: str) -> None:
    assert usual_table(height, width) == table


def test_the_table_decides_what_a_severity_does() -> None:
    third = Corrupt(corruption=corruption(), severity=3)
    assert torch.allclose(third(grey(32), keys=keys(2)), torch.tensor(0.4 * 0.7))
    assert torch.allclose(third(grey(200), keys=keys(2)), torch.tensor(0.4 * 0.3))
    named = Corrupt(corruption=corruption(), severity=3, table="imagenet224")
    assert torch.allclose(named(grey(32), keys=keys(2)), torch.tensor(0.4 * 0.3))


def test_options_reach_the_function() -> None:
    squared = Corrupt(corruption=corruption(), severity=5, options={"is_squared": True})
    assert torch.allclose(squared(grey(32), keys=keys(2)), torch.tensor(0.1))


@pytest.mark.parametrize("severity", [0, 6, -1, 1.5, True, None])
def test_severities_go_from_1_to_5(severity: Any) -> None:
    with pytest.raises(DefinitionError, match="Severities go from 1 to 5"):
        Corrupt(corruption=corruption(), severity=severity)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": "cifar"}, "no parameters 'cifar'. It has cifar32, imagenet224"),
        ({"output": "png"}, "output 'png'. Use one of float, uint8, jpeg85"),
        ({"options": {"is_cubed": True}}, "no option is_cubed=True. It has is_squared"),
        ({"options": {"is_squared": 3}}, "no option is_squared=3"),
    ],
)
def test_a_wrong_choice_is_told_when_it_is_made(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        Corrupt(corruption=corruption(), severity=1, **changes)


def test_a_size_without_parameters_is_told() -> None:
    with pytest.raises(DefinitionError, match="no parameters 'tinyimagenet64'"):
        Corrupt(corruption=corruption(), severity=1)(grey(64), keys=keys(2))


def test_a_corruption_without_severities_takes_none() -> None:
    plain = corruption(parameters={}, options={}, function=lambda images: 1 - images)
    assert torch.allclose(Corrupt(corruption=plain, severity=None)(grey(200), keys=keys(2)), torch.tensor(0.6))
    with pytest.raises(DefinitionError, match="has no severities, but 2 was asked for"):
        Corrupt(corruption=plain, severity=2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"cifar32": severities("factor", 1, 2, 3, 4)}}, "'cifar32' has 4 severities. Give 5"),
        (
            {"parameters": {"cifar32": severities("factor power", *[(1, 2)] * 5)}},
            "power, which its function does not take",
        ),
        ({"function": lambda image, factor: image}, "lacks images"),
        ({"name": "a b"}, "is not allowed"),
    ],
)
def test_a_row_that_cannot_work_is_refused_when_it_is_built(changes: Mapping[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        corruption(**changes)


def test_built_in_corruptions_declare_their_version() -> None:
    """So that a bump makes the results of every setting stale that uses one, also of a user's own."""
    assert {row.version for row in CORRUPTIONS} == {VERSION}


def test_the_output_jpeg85_is_what_pillow_writes_at_quality_85() -> None:
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    written = Corrupt(corruption=corruption(), severity=1, output="jpeg85")(images, keys=keys(2))
    cut = Corrupt(corruption=corruption(), severity=1, output="uint8")(images, keys=keys(2))
    for before, after in zip(cut, written, strict=True):
        buffer = io.BytesIO()
        Image.fromarray((255 * before).round().byte().permute(1, 2, 0).numpy()).save(buffer, "JPEG", quality=85)
        assert np.array_equal((255 * after).round().byte().permute(1, 2, 0).numpy(), np.asarray(Image.open(buffer)))


def test_what_cannot_be_corrupted_is_told_from_the_shape_alone() -> None:
    by_size = Corrupt(corruption=corruption(), severity=1)
    by_size.check_shape((2, 1, 32, 200))
    with pytest.raises(DefinitionError, match="no parameters 'tinyimagenet64'"):
        by_size.check_shape((2, 1, 64, 64))
    with pytest.raises(ShapeError, match="at least 8 x 8"):
        by_size.check_shape((2, 1, 7, 64))


def test_the_readme_adds_a_corruption_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (Path(__file__).resolve().parents[4] / "README.md").read_text()
    blocks = [block for block in re.findall(r"```python\n(.*?)```", readme, re.DOTALL) if "add_corruption" in block]
    own = registry.Registry()
    monkeypatch.setattr(registry, "registry", own)
    exec(compile(blocks[0], "README.md", "exec"), {})
    weak, strong = (Corrupt(corruption=own.corruption("shade"), severity=level) for level in (1, 5))
    images = grey(200, 0.8)
    assert (strong(images, keys=keys(2)) < weak(images, keys=keys(2)))[..., :-1].all()
    assert torch.equal(strong(images, keys=keys(2))[..., -1], images[..., -1])  # the right side stays


@pytest.mark.parametrize("shape", [(2, 32, 32), (2, 2, 32, 32), (2, 3, 7, 32), (2, 3, 32, 7), (2, 4, 32, 32)])
def test_images_of_another_shape_are_told(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"1 or 3 channels and at least 8 x 8"):
        Corrupt(corruption=corruption(), severity=1)(torch.zeros(shape), keys=keys(2))


@pytest.mark.parametrize("value", [1.01, -0.01, float("nan"), 128.0])
def test_images_outside_0_to_1_are_told(value: float) -> None:
    with pytest.raises(DataError, match=r"must be in \[0, 1\]"):
        Corrupt(corruption=corruption(), severity=1)(grey(32, value), keys=keys(2))


def test_images_of_another_type_or_number_are_told() -> None:
    with pytest.raises(DataError, match=r"float64\. Convert them to float32"):
        Corrupt(corruption=corruption(), severity=1)(grey(32).double(), keys=keys(2))
    with pytest.raises(ShapeError, match="2 images with the keys of 3 samples"):
        Corrupt(corruption=corruption(), severity=1)(grey(32), keys=keys(3))


def test_no_images_give_no_images() -> None:
    assert Corrupt(corruption=corruption(), severity=1)(grey(32, n=0), keys=keys(0)).shape == (0, 1, 32, 32)


def test_identity_holds_the_table_that_is_used_and_its_values() -> None:
    by_size = Corrupt(corruption=corruption(), severity=2)
    fixed = by_size.at_size(32, 32)
    assert (fixed.table, fixed.identity()["parameters"]) == ("cifar32", {"cifar32": {"factor": 0.8}})
    assert set(by_size.identity()["parameters"]) == {"cifar32", "imagenet224"}
    others = [
        by_size, fixed, Corrupt(corruption=corruption(), severity=2, table="imagenet224"),
        Corrupt(corruption=corruption(), severity=2, output="uint8"), Corrupt(corruption=corruption(), severity=3),
        Corrupt(corruption=corruption(), severity=2, options={"is_squared": True}),
        Corrupt(corruption=corruption(files=lambda: "abc"), severity=2),
        Corrupt(corruption=corruption(version="2"), severity=2),
    ]  # fmt: skip
    assert len({json.dumps(other.identity()) for other in others}) == len(others)
