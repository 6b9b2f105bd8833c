"""The reference's weather, given the random numbers of ours: what the package computes when it draws the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from scipy.special import ndtri
from tests.corruption_images import keys

from testbed.perturbations.corruptions.corruption import Corruption
from testbed.perturbations.corruptions.fog import smallest_side

EXPECTED = Path(__file__).parent / "testbed" / "perturbations" / "corruptions" / "expected"
PARAMETERS = Path(__file__).resolve().parents[2] / "shared" / "expected" / "corruption_params.json"
STEPS = 64  # stored values are in 64ths of a grey level
Levels = NDArray[np.float64]


def reference() -> Any:
    """The module of the reference's corruptions."""
    pytest.importorskip("imagecorruptions", reason="opt-in: pip install imagecorruptions-imaug==1.1.5")
    from imagecorruptions import corruptions

    return corruptions


def differences(corruption: Corruption, image: torch.Tensor, theirs: Levels, severity: int) -> Levels:
    """|ours - theirs| in grey levels, for an image (1, C, H, W) and theirs (H, W, C) or (H, W)."""
    ours = corruption.function(image, keys=keys(1), **corruption.at(severity, "imagenet224"))[0]
    levels = ours.movedim(0, 2).double().numpy() * 255
    return np.asarray(np.abs(levels - theirs.reshape(levels.shape)))


def as_picture(image: torch.Tensor) -> Image.Image:
    """(1, C, H, W) of whole grey levels as a PIL image."""
    levels = image[0].mul(255).round().byte().movedim(0, 2).numpy()
    return Image.fromarray(levels[..., 0] if levels.shape[2] == 1 else levels)


def fog_by_reference(image: torch.Tensor, severity: int, monkeypatch: pytest.MonkeyPatch) -> Levels:
    side = smallest_side(*image.shape[2:])
    units = keys(1).uniform("fog/plasma", (side, side))[0].double().numpy()
    draws = _plasma_draws(units)
    monkeypatch.setattr(np.random, "uniform", lambda low, high, size: low + (high - low) * next(draws))
    return np.asarray(reference().fog(as_picture(image), severity))


def _plasma_draws(units: Levels) -> Iterator[Levels]:
    """The units in the order in which the reference asks for them."""
    step = len(units)
    while step >= 2:
        half = step // 2
        yield units[half::step, half::step]
        yield units[::step, half::step]
        yield units[half::step, ::step]
        step = half


def frost_by_reference(
    image: torch.Tensor, severity: int, monkeypatch: pytest.MonkeyPatch, *, scale: float = 1
) -> Levels:
    """Its textures are scaled as the published code did, not by its own 1.1; of six it picks among five."""
    module, draws = reference(), iter(keys(1).uniform("frost/crop", (3,))[0].tolist())
    resize = module.cv2.resize

    def integer(low: int, high: int | None = None) -> int:
        return int(next(draws) * 5) if high is None else low + int(next(draws) * (high - low))

    monkeypatch.setattr(np.random, "randint", integer)
    monkeypatch.setattr(module.cv2, "resize", lambda picture, **_: resize(picture, (0, 0), fx=scale, fy=scale))
    return np.asarray(module.frost(as_picture(image), severity))


def snow_by_reference(
    image: torch.Tensor, severity: int, monkeypatch: pytest.MonkeyPatch, *, is_cut: bool = True
) -> Levels:
    """It blurs a layer in float, which the published code cut to 8 bits before: with `is_cut` it does that too."""
    module, (height, width) = reference(), image.shape[2:]
    blur: Callable[..., Levels] = module._motion_blur
    field = ndtri(keys(1).uniform("snow/field", (height, width), dtype="float64")[0].numpy())
    share = keys(1).uniform("snow/angle", (), dtype="float64").item()

    def cut_blur(layer: Levels, **arguments: float) -> Levels:
        return blur(np.floor(layer * 255) / 255 if is_cut else layer, **arguments)

    monkeypatch.setattr(np.random, "normal", lambda size, loc, scale: loc + scale * field)
    monkeypatch.setattr(np.random, "uniform", lambda low, high: low + (high - low) * share)
    monkeypatch.setattr(module, "_motion_blur", cut_blur)
    return np.asarray(module.snow(as_picture(image), severity))


def spatter_by_reference(image: torch.Tensor, severity: int, monkeypatch: pytest.MonkeyPatch) -> Levels:
    field = keys(1).normal("spatter/field", tuple(image.shape[2:]))[0].double().numpy()
    monkeypatch.setattr(np.random, "normal", lambda size, loc, scale: loc + scale * field)
    return np.asarray(reference().spatter(as_picture(image), severity))


def stored(name: str) -> Levels:
    """The reference's values of a corruption at severity 1 to 5, in grey levels, as they were stored."""
    with np.load(EXPECTED / f"{name}.npz") as arrays:
        return np.asarray(arrays["levels"] / STEPS)


def store(name: str, levels: Levels) -> None:
    """Stores them; called by hand, from the tests that remake them."""
    np.savez_compressed(EXPECTED / f"{name}.npz", levels=np.round(levels * STEPS).astype(np.uint16))
