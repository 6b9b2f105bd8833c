"""Attacks that see a classifier and its gradients: FGSM, and projected gradient descent in an L-infinity or L2 ball."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from testbed.errors import DefinitionError
from testbed.perturbations.checks import checked_images
from testbed.perturbations.noise import row_sums
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

AttackNorm = Literal["linf", "l2"]
Labels = Literal["targets", "predicted"]
LEAST_SQUARE = 1e-12  # of the length of a gradient that has a direction


@dataclass(frozen=True, kw_only=True)
class Fgsm:
    """One step of length `epsilon` along the sign of the gradient of the cross-entropy.

    Args:
        epsilon: radius of the L-infinity ball, in [0, 1] pixel units.
        labels: that the model is moved away from: the 'targets', or what it has 'predicted' on the clean image.
        clips: whether images stay in [0, 1].
    Source: Goodfellow, Shlens & Szegedy, ICLR 2015.
    """

    epsilon: float
    labels: Labels = "targets"
    clips: bool = True
    is_random = False

    def __post_init__(self) -> None:
        _check("Fgsm", self.labels, epsilon=self.epsilon)

    def __call__(
        self, images: Tensor, model: Callable[[Tensor], Tensor], *, targets: Tensor, keys: SampleKeys
    ) -> Tensor:
        """The attacked images; arguments and errors as for `Pgd`, but that nothing is drawn."""
        images = checked_images(images, keys, what="Fgsm")
        labels = _attacked_labels(self.labels, images, model, targets)
        step = _ascent(model, images, labels, norm="linf").mul_(self.epsilon)
        return _projected(images + step, images, norm="linf", epsilon=self.epsilon, clips=self.clips)


@dataclass(frozen=True, kw_only=True)
class Pgd:
    """Steps along the gradient of the cross-entropy, each brought back into the ball; the last image is the result.

    A step follows the sign of the gradient ('linf') or its direction ('l2'). The start is uniform in the box of half
    side `epsilon`, brought into the ball; it depends on the sample alone. Gradients differ in their last bits between
    batch sizes and devices, and where a sign hangs on these so does the result.

    Args:
        norm: 'linf' or 'l2'.
        epsilon: radius of the ball, in [0, 1] pixel units.
        step_size: length of a step, likewise.
        num_steps: how many.
        random_start: whether to start elsewhere than at the clean image.
        labels: that the model is moved away from: the 'targets', or what it has 'predicted' on the clean image.
        clips: whether images stay in [0, 1], which follows the projection.
        reference_side: height in pixels of the images that an l2 `epsilon` is for; others get one in proportion, with
            steps as they are.
    Source: Madry et al., ICLR 2018; Kurakin, Goodfellow & Bengio 2017.
    """

    norm: AttackNorm
    epsilon: float
    step_size: float
    num_steps: int
    random_start: bool = True
    labels: Labels = "targets"
    clips: bool = True
    reference_side: int | None = None

    def __post_init__(self) -> None:
        if self.norm not in get_args(AttackNorm):
            raise DefinitionError(f"Pgd has norm {self.norm!r}. Use one of {', '.join(get_args(AttackNorm))}.")
        if self.num_steps < 1:
            raise DefinitionError(f"Pgd has num_steps {self.num_steps}. It must be 1 or more.")
        if self.reference_side is not None and (self.norm != "l2" or self.reference_side < 1):
            raise DefinitionError(
                f"Pgd has reference_side {self.reference_side} in {self.norm}. It is a number of pixels, for l2 alone."
            )
        _check("Pgd", self.labels, epsilon=self.epsilon, step_size=self.step_size)

    @property
    def is_random(self) -> bool:
        """Whether another draw gives another start."""
        return self.random_start

    def __call__(
        self, images: Tensor, model: Callable[[Tensor], Tensor], *, targets: Tensor, keys: SampleKeys
    ) -> Tensor:
        """The attacked images, as a new tensor.

        Args:
            images: (n, C, H, W) float32 in [0, 1].
            model: images in [0, 1] to logits (n, classes), by differentiable steps.
            targets: (n,) int64, columns of the logits; -1 for a sample without one, whose predicted class is attacked.
            keys: of the n samples.
        Returns: (n, C, H, W) float32. Within the 'linf' ball and [0, 1] without a tolerance; within the 'l2' ball up
            to the rounding of pixels to float32.
        Raises:
            DefinitionError: the logits have no gradient, or a target is none of their columns.
            DataError: images are not float32, or not in [0, 1].
        """
        images = checked_images(images, keys, what="Pgd")
        labels = _attacked_labels(self.labels, images, model, targets)
        epsilon = self._radius(images)
        attacked = images
        if self.random_start:
            units = keys.uniform("attack/start", tuple(images.shape[1:]), images.device)
            attacked = self._back(images + (2 * units - 1) * epsilon, images, epsilon)
        for _ in range(self.num_steps):
            step = _ascent(model, attacked, labels, norm=self.norm).mul_(self.step_size)
            attacked = self._back(attacked + step, images, epsilon)
        return attacked

    def _radius(self, images: Tensor) -> float:
        return self.epsilon if self.reference_side is None else self.epsilon * images.shape[-2] / self.reference_side

    def _back(self, moved: Tensor, images: Tensor, epsilon: float) -> Tensor:
        return _projected(moved, images, norm=self.norm, epsilon=epsilon, clips=self.clips)


def _attacked_labels(labels: Labels, images: Tensor, model: Callable[[Tensor], Tensor], targets: Tensor) -> Tensor:
    """Classes (n,) that the model is to be moved away from."""
    import torch

    with torch.no_grad():
        logits = model(images.clone())  # a network may write into what it is given
    predicted = logits.argmax(dim=1)
    if labels == "predicted":
        return predicted
    if len(targets) and int(targets.max()) >= logits.shape[1]:
        raise DefinitionError(
            f"The attack is on class {int(targets.max())}, but the model has {logits.shape[1]} outputs. Use a model of "
            "the setting's label space."
        )
    return torch.where(targets >= 0, targets, predicted)


def _ascent(model: Callable[[Tensor], Tensor], images: Tensor, labels: Tensor, *, norm: AttackNorm) -> Tensor:
    """The step of unit length in which the cross-entropy of each image rises most, as far as its gradient tells."""
    gradient = _gradient(model, images, labels)
    if norm == "linf":
        return gradient.sign_()
    lengths = row_sums(gradient.flatten(1).square()).clamp_(min=LEAST_SQUARE).sqrt_()
    return gradient.div_(_per_image(lengths, gradient))


def _gradient(model: Callable[[Tensor], Tensor], images: Tensor, labels: Tensor) -> Tensor:
    import torch

    with torch.enable_grad():
        inputs = images.detach().requires_grad_()
        logits: Any = model(inputs.clone())
        if not logits.requires_grad:
            raise DefinitionError(
                "The model's logits have no gradient, which an attack follows: its classify computes outside torch, or "
                "without gradients. Evaluate it without an attack."
            )
        loss = torch.nn.functional.cross_entropy(logits, labels, reduction="sum")  # a sum keeps images independent
        (gradient,) = torch.autograd.grad(loss, inputs)
    return gradient.nan_to_num(nan=0.0)  # where there is no direction there is no step


def _projected(moved: Tensor, images: Tensor, *, norm: AttackNorm, epsilon: float, clips: bool) -> Tensor:
    """`moved`, brought into the ball around `images`, then into [0, 1] where asked."""
    import torch

    offsets = moved - images
    if norm == "linf":
        offsets.clamp_(-epsilon, epsilon)
    else:
        lengths = row_sums(offsets.flatten(1).square()).clamp_(min=LEAST_SQUARE).sqrt_()
        offsets.mul_(_per_image((epsilon / lengths).clamp_(max=1), offsets))
    projected = images + offsets
    if norm == "linf":  # the sum is rounded: the next float32 inwards is in the ball
        is_outside = (projected - images).abs_() > epsilon
        projected = torch.where(is_outside, torch.nextafter(projected, images), projected)
    return projected.clamp_(0, 1) if clips else projected


def _per_image(values: Tensor, images: Tensor) -> Tensor:
    return values.view(-1, *[1] * (images.ndim - 1))


def _check(what: str, labels: Labels, **sizes: float) -> None:
    if labels not in get_args(Labels):
        raise DefinitionError(f"{what} has labels {labels!r}. Use one of {', '.join(get_args(Labels))}.")
    for name, size in sizes.items():
        if not 0 < size < math.inf:
            raise DefinitionError(f"{what} has {name} {size!r}. It must be a positive number.")
