"""Training images in a keyed order, moved, flipped and made noisy anew in every epoch, whatever the batch size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from testbed.errors import DataError
from testbed.perturbations.noise import GaussianNoise, UniformNoise
from testbed.randomness import SampleKeys, permutation, stream_key
from testbed.records import Samples
from testbed.training.recipe import Recipe

if TYPE_CHECKING:
    from torch import Tensor


def images_tensor(samples: Samples) -> Tensor:
    """Images held as an array, as [n, C, H, W] float32 in [0, 1].

    Raises: DataError: the samples are files or rows of numbers.
    """
    import torch

    items = samples.items
    if not isinstance(items, np.ndarray) or items.ndim not in (3, 4):
        raise DataError(
            f"Data set '{samples.dataset}' ({samples.split}) does not hold its images as one array. Training takes "
            "[n, H, W] or [n, H, W, C], e.g. from an .npz file."
        )
    images = torch.from_numpy(items.astype(np.float32))  # a copy: an array from a file may be read-only
    if items.dtype == np.uint8:
        images = images / 255
    return images.unsqueeze(1) if items.ndim == 3 else images.permute(0, 3, 1, 2).contiguous()


@dataclass(frozen=True, kw_only=True)
class Batches:
    """The batches of every epoch.

    Args:
        images: [n, C, H, W] float32 in [0, 1].
        targets: [n] int64 class indices.
        sample_indices: [n] positions of the images in their whole split.
        recipe: batch size, shift, flip and noise.
        seed: with the data set's name and the epoch, all that order, shift, flip and noise depend on.
        dataset: its name.
    """

    images: Tensor
    targets: Tensor
    sample_indices: NDArray[np.int64]
    recipe: Recipe
    seed: int
    dataset: str

    @property
    def per_epoch(self) -> int:
        """Number of batches, the last of which may be smaller."""
        return -(-len(self.images) // self.recipe.batch_size)

    def of_epoch(self, epoch: int) -> Iterator[tuple[Tensor, Tensor]]:
        """(images, targets) of each batch of an epoch, counted from 1."""
        key = stream_key(self.seed, purpose="train", dataset=self.dataset, stream=f"order/{epoch}")
        order = permutation(key, len(self.images))
        for start in range(0, len(order), self.recipe.batch_size):
            chosen = order[start : start + self.recipe.batch_size]
            indices = self.sample_indices[chosen]
            keys = SampleKeys(seed=self.seed, purpose="train", dataset=self.dataset, sample_indices=indices, draw=epoch)
            yield self._augmented(self.images[chosen], keys), self.targets[chosen]

    def _augmented(self, images: Tensor, keys: SampleKeys) -> Tensor:
        if self.recipe.max_shift:
            images = shifted(images, keys, max_shift=self.recipe.max_shift)
        if self.recipe.flip:
            images = flipped(images, keys)
        noise = _NOISES[self.recipe.noise](self.recipe)
        return noise(images, keys=keys) if noise else images


def shifted(images: Tensor, keys: SampleKeys, *, max_shift: int) -> Tensor:
    """`images` [n, C, H, W], each moved by a whole number of pixels in [-max_shift, max_shift], down and right alone.

    Rows and columns are drawn independently and uniformly; zeros move in.
    """
    import torch
    from torch.nn import functional

    num_images, _, height, width = images.shape
    units = keys.uniform("shift", (2,), images.device)
    offsets = (units * (2 * max_shift + 1)).long()
    rows = offsets[:, :1] + torch.arange(height, device=images.device)
    columns = offsets[:, 1:] + torch.arange(width, device=images.device)
    padded = functional.pad(images, [max_shift] * 4)
    each = torch.arange(num_images, device=images.device)
    return padded[each[:, None, None], :, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def flipped(images: Tensor, keys: SampleKeys) -> Tensor:
    """`images` [n, C, H, W], each mirrored left to right with probability 1/2."""
    import torch

    is_flipped = keys.uniform("flip", (1, 1, 1), images.device) < 0.5
    return torch.where(is_flipped, images.flip(3), images)


_NOISES: dict[str, Callable[[Recipe], UniformNoise | GaussianNoise | None]] = {
    "none": lambda recipe: None,
    "uniform-linf": lambda recipe: UniformNoise(norm="linf", epsilon=recipe.epsilon),
    "gaussian": lambda recipe: GaussianNoise(sigma=recipe.sigma),
}
