"""A setting that turns images over, with its clean parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import registry

if TYPE_CHECKING:
    from torch import Tensor


def upside_down(images: Tensor) -> Tensor:
    """Images (n, C, H, W) in [0, 1], turned over; no value is changed."""
    return images.flip(2)


registry.add_eval_setting(
    EvalSetting(
        name="pinned-upside-down",
        dataset=StandardDataset(name="digits"),
        perturbation_fn_gpu=upside_down,
        shift=Shift(family="camera", name="upside-down", clean_eval_setting="digits"),
    )
)
