"""How networks compute: the precision, the layout of images in memory, and whether networks are compiled."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PrecisionName = Literal["fp32", "tf32", "bf16", "fp16"]


@dataclass(frozen=True, kw_only=True)
class Arithmetic:
    """What a logit may depend on beside the weights and the image; recorded with every result.

    Args:
        precision: 'fp32' (no TF32 anywhere), 'tf32' (matrix products and convolutions on CUDA), 'bf16' or 'fp16'
            (autocast); None is PyTorch's own default: fp32, with TF32 in convolutions on CUDA.
        channels_last: keep images and weights in the NHWC layout.
        is_compiled: run networks through `torch.compile`.
    """

    precision: PrecisionName | None = None
    channels_last: bool = False
    is_compiled: bool = False
