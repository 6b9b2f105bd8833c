"""What every perturbation asks of the images it is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from testbed.errors import DataError, ShapeError
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

_ROUNDING = 1e-6  # an interpolation's weights add up to 1 only so far


def checked_images(images: Tensor, keys: SampleKeys, *, what: str, is_bounded: bool = True, remedy: str = "") -> Tensor:
    """`images`, or an error; where bounded, what lies outside [0, 1] by rounding alone is put back.

    Args:
        images: (n, ...).
        keys: of the n samples.
        what: asks for them, as the first word of the error.
        is_bounded: whether they must be in [0, 1].
        remedy: what else to do where they are not.
    Raises:
        ShapeError: `keys` are of another number of samples.
        DataError: images are not float32, or not in [0, 1].
    """
    if len(images) != len(keys):
        raise ShapeError(f"{what} was asked for {len(images)} images with the keys of {len(keys)} samples.")
    if str(images.dtype) != "torch.float32":
        raise DataError(f"{what} was asked for images of type {images.dtype}. Convert them to float32 first.")
    if not is_bounded or not images.numel():
        return images
    import torch

    lowest, highest = torch.stack(images.aminmax()).tolist()  # a CUDA device is waited for once, not twice
    if not -_ROUNDING <= lowest <= highest <= 1 + _ROUNDING:  # also true of NaN
        raise DataError(
            f"{what} was asked for images with values from {lowest:g} to {highest:g}. They must be in [0, 1]: "
            f"normalize after it{', ' * bool(remedy)}{remedy}."
        )
    return images if 0 <= lowest <= highest <= 1 else images.clamp(0, 1)
