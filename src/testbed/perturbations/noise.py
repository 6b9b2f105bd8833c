"""Random noise of a bounded or a typical size: uniform in an L_p ball, on a fraction of the values, and Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from testbed.errors import DefinitionError
from testbed.perturbations.checks import checked_images
from testbed.randomness import SampleKeys
from testbed.records import NORMS, Norm

if TYPE_CHECKING:
    from torch import Tensor

Boundary = Literal["truncate", "clip", "none"]


@dataclass(frozen=True, kw_only=True)
class UniformNoise:
    """Noise uniform in the L_p ball of radius `epsilon` around each sample.

    The random numbers do not depend on `epsilon`: at twice the level the same sample moves in the same direction.

    Args:
        norm: 'linf', 'l2' or 'l1'.
        epsilon: radius in [0, 1] pixel units (units of the data for rows of numbers); None until a separation sets it.
        boundary: what happens at 0 and 1. 'truncate': uniform on the part of the ball within [0, 1] ('linf' alone);
            'clip': uniform in the ball, then clipped, which piles mass on 0 and 1; 'none': the data have no bounds.
        is_shared: all samples of a draw move by the same unit offsets, which training and evaluation share. With it a
            run has as many independent offsets as draws, whatever the number of samples.
    Source: Siedel et al. 2022 and their code ('linf', truncated); Calafiore, Dabbene & Tempo 1998 ('l2', 'l1');
        the authors' code for their 2D data seeds every point alike (`is_shared`).
    """

    norm: Norm
    epsilon: float | None
    boundary: Boundary = "truncate"
    is_shared: bool = field(default=False, metadata={"is_later": True})

    def __post_init__(self) -> None:
        if self.norm not in NORMS:
            raise DefinitionError(f"UniformNoise has norm {self.norm!r}. Use one of {', '.join(NORMS)}.")
        if self.boundary not in get_args(Boundary):
            raise DefinitionError(
                f"UniformNoise has boundary {self.boundary!r}. Use one of {', '.join(get_args(Boundary))}."
            )
        if self.boundary == "truncate" and self.norm != "linf":
            raise DefinitionError(
                f"UniformNoise in the {self.norm} ball cannot be truncated to [0, 1]. Use boundary='clip', or 'none' "
                "for data without bounds."
            )
        if self.epsilon is not None:
            _check_level(self.epsilon, what="UniformNoise has epsilon")

    def __call__(self, images: Tensor, *, keys: SampleKeys) -> Tensor:
        """`images` with noise added: a new tensor, no value farther than `epsilon` away.

        Args:
            images: (n, ...) float32; in [0, 1] unless the boundary is 'none'.
            keys: of the n samples.
        Returns: (n, ...) float32 on the device of `images`. Within the 'linf' ball and [0, 1] without a tolerance;
            within the other balls up to the rounding of pixels to float32. The same bits in any batch; on another kind
            of device 'linf' too, 'l2' and 'l1' to rounding.
        Raises:
            DefinitionError: `epsilon` is None.
            ShapeError: `keys` are of another number of samples.
            DataError: images are not float32, or not in [0, 1].
        """
        if self.epsilon is None:
            raise DefinitionError(
                f"UniformNoise ({self.norm}) has no level yet: it comes from the minimal class separation of the data "
                "set. Evaluate through a plan, which computes it, or set epsilon."
            )
        images = _checked(images, keys, is_bounded=self.boundary != "none")
        if self.is_shared:
            keys = keys.of_run()
        if self.norm == "linf":
            noisy = _uniform_in_box(images, keys, epsilon=self.epsilon, truncate=self.boundary == "truncate")
        else:
            noisy = (images.double() + self.epsilon * _unit_ball(images, keys, norm=self.norm)).float()
        return noisy.clamp_(0, 1) if self.boundary == "clip" else noisy


@dataclass(frozen=True, kw_only=True)
class L0Noise:
    """A fraction of each image's values replaced by uniform ones in [0, 1]: uniform noise in an L0 ball.

    A value is one channel of one pixel. Exactly round(fraction * values) of them are replaced, each at most once; those
    of a lower level are among those of a higher one, by the same new values.

    Args:
        fraction: of the values, in [0, 1].
    Source: Siedel et al. 2024 and their code, which draws the places with replacement and so hits fewer of them.
    """

    fraction: float

    def __post_init__(self) -> None:
        if not 0 <= self.fraction <= 1:
            raise DefinitionError(f"L0Noise has fraction {self.fraction!r}. It must be in [0, 1].")

    def __call__(self, images: Tensor, *, keys: SampleKeys) -> Tensor:
        """`images` with some values replaced, as a new tensor; arguments and errors as for `UniformNoise`.

        Raises: DefinitionError: an image has so few values that none would be replaced.
        """
        import torch

        images = _checked(images, keys, is_bounded=True)
        shape = tuple(images.shape[1:])
        size = math.prod(shape)
        count = math.floor(self.fraction * size + 0.5)
        if not self.fraction:
            return images.clone()
        if not count:
            raise DefinitionError(
                f"L0Noise with fraction {self.fraction:g} replaces none of the {size} values of an image. Use at least "
                f"{0.5 / size:.2g}."
            )
        units = keys.uniform("uniform-l0/place", (size,), images.device, dtype="float64")
        ranks = (units * 2**32).long() * size + torch.arange(size, device=images.device)  # no two of them are equal
        is_replaced = ranks <= ranks.kthvalue(count, dim=1, keepdim=True).values
        values = keys.uniform("uniform-l0/value", shape, images.device)
        return torch.where(is_replaced.reshape(images.shape), values, images)


@dataclass(frozen=True, kw_only=True)
class GaussianNoise:
    """Independent normal noise on every value.

    Args:
        sigma: standard deviation in [0, 1] pixel units (units of the data for rows of numbers).
        boundary: 'clip' to [0, 1], or 'none' for data without bounds.
    """

    sigma: float
    boundary: Literal["clip", "none"] = "clip"

    def __post_init__(self) -> None:
        if self.boundary not in ("clip", "none"):
            raise DefinitionError(f"GaussianNoise has boundary {self.boundary!r}. Use 'clip' or 'none'.")
        _check_level(self.sigma, what="GaussianNoise has sigma")

    def __call__(self, images: Tensor, *, keys: SampleKeys) -> Tensor:
        """`images` + sigma z as a new tensor; arguments and errors as for `UniformNoise`."""
        images = _checked(images, keys, is_bounded=self.boundary != "none")
        noisy = images + self.sigma * keys.normal("gaussian", tuple(images.shape[1:]), images.device)
        return noisy.clamp_(0, 1) if self.boundary == "clip" else noisy


def _uniform_in_box(images: Tensor, keys: SampleKeys, *, epsilon: float, truncate: bool) -> Tensor:
    """Uniform on the L-infinity ball around `images`, or on its intersection with [0, 1]."""
    import torch

    low, high = images - epsilon, images + epsilon
    if truncate:
        low, high = low.clamp_(min=0), high.clamp_(max=1)
    units = keys.uniform("uniform-linf", tuple(images.shape[1:]), images.device)
    noisy = (high - low).mul_(units).add_(low)  # two rounded steps: a fused multiply-add would differ between devices
    # A draw below 1 keeps it below `high`, but `low` and `high` are rounded: the next float32 inwards is in the ball.
    on_rim = (noisy - images).abs_() >= epsilon
    return torch.where(on_rim, torch.nextafter(noisy, images), noisy)


def _unit_ball(images: Tensor, keys: SampleKeys, *, norm: Norm) -> Tensor:
    """Points uniform in the unit ball of 'l2' or 'l1', float64: one of the shape of an image for each of `keys`.

    Direction v / |v| with normal ('l2') or Laplace ('l1') coordinates, radius U^(1/d).
    """
    shape = tuple(images.shape[1:])
    if norm == "l2":
        directions = keys.normal("uniform-l2/direction", shape, images.device).double()
    else:
        centred = keys.uniform("uniform-l1/direction", shape, images.device, dtype="float64") - 0.5
        directions = -centred.sign() * (-2 * centred.abs()).log1p()
    flat = directions.flatten(1)
    lengths = row_sums(flat.square()).sqrt() if norm == "l2" else row_sums(flat.abs())
    radii = keys.uniform(f"uniform-{norm}/radius", (), images.device, dtype="float64") ** (1 / flat.shape[1])
    points: Tensor = flat * (radii / lengths)[:, None]
    return points.reshape(len(keys), *shape)


def row_sums(values: Tensor) -> Tensor:
    """Sums of the rows (n, d), as (n,): halves are added until one column is left.

    The order of the additions is fixed; that of `torch.sum` depends on the batch, the threads and the device.
    """
    from torch.nn import functional

    width = 1 << (values.shape[1] - 1).bit_length()
    values = functional.pad(values, (0, width - values.shape[1]))
    while width > 1:
        width //= 2
        values = values[:, :width] + values[:, width:]
    return values[:, 0]


def usual_boundary(norm: Norm, domain: str) -> Boundary:
    """What noise in the ball of a norm does at the bounds of a data set's domain, 'pixels' or 'numbers'.

    Uniform in the box cut to [0, 1] is the paper's noise; a point of a round ball that leaves [0, 1] is moved back.
    """
    if domain == "numbers":
        return "none"
    return "truncate" if norm == "linf" else "clip"


def _check_level(level: float, *, what: str) -> None:
    if not 0 <= level < math.inf:
        raise DefinitionError(f"{what} {level!r}. It must be 0 or a positive number.")


def _checked(images: Tensor, keys: SampleKeys, *, is_bounded: bool) -> Tensor:
    remedy = "and use boundary='none' for data without bounds"
    return checked_images(images, keys, what="Noise", is_bounded=is_bounded, remedy=remedy)
