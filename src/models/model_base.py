"""What a classifier is to the testbed: `Model`, and the usual image transform and normalization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from models._pixels import centre_crop, resized, to_tensor
from testbed.errors import DataError, DefinitionError
from testbed.records import Norm
from testbed.signatures import argument_names, check_arguments, check_name
from testbed.users_code import asked

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor


@dataclass(frozen=True)
class StandardTransform:
    """Resize of the shorter side (bilinear, antialiased), then a centre crop; to [0, 1] and nothing more.

    Args:
        img_resize_size: length of the shorter side after the resize, in pixels.
        img_crop_size: side of the square that is kept, in pixels.
    """

    img_resize_size: int
    img_crop_size: int

    def __post_init__(self) -> None:
        if not 0 < self.img_crop_size <= self.img_resize_size:
            raise DefinitionError(
                f"StandardTransform resizes to {self.img_resize_size} px and crops {self.img_crop_size} px. "
                "The crop must be positive and no larger than the resize."
            )

    def to_pixels(self, image: Image) -> Image:
        """The transformed 8-bit image, before it is scaled to [0, 1]."""
        return centre_crop(resized(image, [self.img_resize_size]), self.img_crop_size, self.img_crop_size)

    def __call__(self, image: Image) -> Tensor:
        """A PIL image as a float tensor [C, H, W] in [0, 1]."""
        return to_tensor(self.to_pixels(image))

    def on_tensor(self, images: Tensor) -> Tensor:
        """The same geometry on a float batch [n, C, H, W], for images that were perturbed in another space."""
        from torchvision.transforms import functional

        resized: Tensor = functional.resize(images, [self.img_resize_size], antialias=True)
        cropped: Tensor = functional.center_crop(resized, [self.img_crop_size])
        return cropped


@dataclass(frozen=True)
class StandardNormalization:
    """(x - mean) / std per channel, after all perturbations.

    Args:
        mean, std: one number per channel, in [0, 1] pixel units.
        input_space: 'RGB', or 'BGR' to reverse the channels first.
    """

    mean: Sequence[float]
    std: Sequence[float]
    input_space: Literal["RGB", "BGR"] = "RGB"

    def __post_init__(self) -> None:
        if len(self.mean) != len(self.std) or not self.mean:
            raise DefinitionError(f"StandardNormalization has {len(self.mean)} means and {len(self.std)} deviations.")
        if min(self.std) <= 0:
            raise DefinitionError(f"StandardNormalization has std {list(self.std)}. Every value must be positive.")
        if self.input_space not in ("RGB", "BGR"):
            raise DefinitionError(f"StandardNormalization has input_space '{self.input_space}'. Use 'RGB' or 'BGR'.")


@dataclass(frozen=True, kw_only=True)
class FitNoise:
    """Noise on what a model is fitted on: every sample is replaced by noisy copies of it, with its label.

    Args:
        norm: of the ball that the noise is uniform in: 'linf', 'l2' or 'l1'.
        epsilon: its radius, in [0, 1] pixel units (units of the data for rows of numbers); None for half the minimal
            class separation of the data set that the model is fitted on.
        is_shared: all samples get the same offsets, and those of the run's test noise (the published 2D protocol).
        num_copies: of each sample; the sample itself is not kept.
    Source: Siedel et al. 2022, section 4.
    """

    norm: Norm
    epsilon: float | None
    is_shared: bool = False
    num_copies: int = 10

    def __post_init__(self) -> None:
        if self.num_copies < 1:
            raise DefinitionError(f"FitNoise has num_copies {self.num_copies}. It must be 1 or more.")


@dataclass(frozen=True, kw_only=True)
class Model:
    """A classifier and all it takes to run it.

    Args:
        name: what users type; unique within a label space.
        transform: PIL image -> float tensor [C, H, W] in [0, 1]; None takes images as the data set has them.
        classifier_loader: returns the classifier, a torch module or whatever `classify` understands. May take `seed`
            and `dataset`, where a model is fitted in every run, or `weights`: the file of the parameters, and
            `weights_key`.
        eval_batch_size: images per forward pass.
        normalization: applied after all perturbations; None for none.
        arch: architecture, for the listing.
        classify: `classify(images, model[, class_sublist][, adversarial_attack][, keys])` -> logits [n, classes], in
            place of calling the classifier; `images` are normalized, `keys` draws noise that depends on the samples
            alone.
        adversarial_batch_size: images per pass where gradients are needed; the eval batch divided by 8 if not given.
        label_space: whose classes the outputs are, e.g. 'imagenet-1k', 'cifar10', 'digits'.
        is_random: `classify` draws random numbers; each seed is then a run of its own, also on clean images.
        stochastic: the same, said of any model that is random by design, its network included: the global generators
            are seeded for every unit of work, and its results say so. It is part of the model's identity.
        adapts: 'per-evaluation' for a model that is meant to change with what it is shown, as in test-time adaptation:
            each pass over a setting's samples runs in one fixed order in one worker on a model that is loaded anew, in
            the mode that its loader left it in and with gradients; its results say so.
        version: bump it when the definition changes what the model computes; without one the file is the version.
        fit_noise: on the samples that a model is fitted on in every run.
        weights: file of the parameters, or a function that finds it; the file is part of the model's identity.
        weights_key: which of several sets of weights in that file, e.g. 'model_ema'.
        num_outputs: width of the logits, where it is known before the model is loaded.
        class_names: names of the outputs in their order, where whoever published the model tells them.
        answers: 'logits', or 'votes': counts of how often each class was chosen.
        is_differentiable: its answers have gradients with respect to images, which attacks follow.
        training_data: data sets that it was trained on, e.g. ('imagenet-21k', 'imagenet-1k').
        baseline: name of the model that is the same without the intervention, for relative robustness.
        description: one line for listings.
    """

    name: str
    transform: Callable[[Image], Tensor] | None
    classifier_loader: Callable[..., Any]
    eval_batch_size: int
    normalization: StandardNormalization | None = None
    arch: str | None = None
    classify: Callable[..., Any] | None = None
    adversarial_batch_size: int | None = None
    label_space: str = "imagenet-1k"
    is_random: bool = False
    stochastic: bool = False
    adapts: Literal["per-evaluation"] | None = None
    fit_noise: FitNoise | None = None
    version: str | None = None
    weights: Path | Callable[[], Path] | None = None
    weights_key: str | None = None
    num_outputs: int | None = None
    class_names: tuple[str, ...] | None = None
    answers: Literal["logits", "votes"] = "logits"
    is_differentiable: bool = True
    training_data: tuple[str, ...] = ()
    baseline: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, what="Model")
        where = f"Model '{self.name}':"
        if not isinstance(self.eval_batch_size, int) or self.eval_batch_size < 1:
            raise DefinitionError(f"{where} eval_batch_size is {self.eval_batch_size!r}. It must be 1 or more.")
        check_arguments(self.classifier_loader, where=f"{where} classifier_loader", required=(),
                        optional=("seed", "dataset", "weights", "weights_key"))  # fmt: skip
        check_arguments(self.classify, where=f"{where} classify", required=("images", "model"),
                        optional=("class_sublist", "adversarial_attack", "keys"))  # fmt: skip
        if "weights" in argument_names(self.classifier_loader) and self.weights is None:
            raise DefinitionError(f"{where} classifier_loader takes `weights`, but the definition names none.")
        if self.weights_key is not None and "weights_key" not in argument_names(self.classifier_loader):
            raise DefinitionError(
                f"{where} its loader takes no `weights_key`, so that it cannot take {self.weights_key!r} from a file. "
                "Save these weights alone in a file, or evaluate the file as local:PATH with --arch."
            )
        if self.fit_noise is not None and not self.is_fitted:
            raise DefinitionError(
                f"{where} fit_noise needs a classifier_loader that takes `dataset`, to fit it in a run."
            )
        if self.num_outputs is not None and self.num_outputs < 1:
            raise DefinitionError(f"{where} num_outputs is {self.num_outputs}. It must be 1 or more.")
        if self.answers not in ("logits", "votes"):
            raise DefinitionError(f"{where} answers is {self.answers!r}. Use 'logits' or 'votes'.")
        if self.adapts not in (None, "per-evaluation"):
            raise DefinitionError(f"{where} adapts is {self.adapts!r}. Use 'per-evaluation', or leave it out.")
        if isinstance(self.training_data, str):  # type: ignore[unreachable]
            raise DefinitionError(f"{where} training_data is a string. Name the data sets in a tuple.")
        if self.transform is not None and not callable(self.transform):
            raise DefinitionError(f"{where} transform must take a PIL image, but is {self.transform!r}.")

    def weights_file(self) -> Path | None:
        """The file of the parameters; None for a model that names none.

        Raises: DataError: it is not there.
        """
        path = self.weights
        if callable(path):
            path = asked(path, what=f"The function for the weights of model '{self.name}'")
        if path is not None and not path.is_file():
            raise DataError(f"Model '{self.name}' needs its weights at {path}, which is not there. Put them there.")
        return path

    def with_weights(self, file: Path, weights_key: str | None = None) -> Model:
        """The same model with the parameters in `file`, or with those of its sets of weights that has this key.

        Raises: DefinitionError: the model loads its parameters itself.
        """
        if "weights" not in argument_names(self.classifier_loader):
            raise DefinitionError(
                f"Model '{self.name}' takes no file of weights: its classifier_loader has no argument `weights`. Add "
                "one, or evaluate the file as local:PATH with --arch."
            )
        return replace(self, weights=file, weights_key=weights_key)

    @property
    def draws(self) -> bool:
        """Whether its answers are random by design."""
        return self.is_random or self.stochastic

    @property
    def is_fitted(self) -> bool:
        """Whether the model is fitted in every run, on a split of the data set that it is evaluated on."""
        return "dataset" in argument_names(self.classifier_loader)

    @property
    def depends_on_seed(self) -> bool:
        """Whether runs with different seeds fit different models, on the same samples."""
        return "seed" in argument_names(self.classifier_loader) or self.fit_noise is not None
