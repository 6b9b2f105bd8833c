"""The ways in which a model may be shown its images wrongly, each put right: its definition with one thing changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from models._pixels import resized, to_tensor
from models.model_base import Model, StandardNormalization, StandardTransform
from testbed.doctor.evidence import LEAST_GAIN
from testbed.doctor.finding import Fault

if TYPE_CHECKING:
    from PIL.Image import Image
    from torch import Tensor

Arrangement = Literal["as is", "inverted", "transposed"]
Numbers = tuple[float, ...]

# What networks are usually trained with: title, mean, standard deviation; by the number of channels.
PUBLISHED: dict[int, tuple[tuple[str, Numbers, Numbers], ...]] = {
    3: (
        ("ImageNet's", (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
        ("to [-1, 1]", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)),
        ("CLIP's", (0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)),
        ("CIFAR-10's", (0.4914, 0.4822, 0.4465), (0.247, 0.2435, 0.2616)),
    ),
    1: (
        ("to [-1, 1]", (0.5,), (0.5,)),
        ("MNIST's", (0.1307,), (0.3081,)),
        ("Fashion-MNIST's", (0.286,), (0.353,)),
    ),
}
CAFFE_MEAN = (0.406, 0.456, 0.485)  # of blue, green and red
USUAL_SIZES = (28, 32, 64, 96, 128, 160, 192, 224, 256, 299, 384, 512)  # of inputs, in pixels
USUAL_CROP = 0.875
GEOMETRY_GAIN = 0.05  # many networks do a little better at other sizes than they were trained at; that is no fault


@dataclass(frozen=True, kw_only=True)
class View:
    """How a model is shown images: its definition, and what else is done with them first."""

    model: Model
    arrangement: Arrangement = "as is"


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A fault that a definition might have, and the view that has it not.

    Args:
        words: what is then wrong, a sentence.
        change: of the definition, in a few words.
        fix: what to do, a sentence.
        least_gain: accuracy that it must gain to count as one, as a fraction.
        plausibility: what goes first among those that help as much.
    """

    fault: Fault
    words: str
    change: str
    fix: str
    view: View
    least_gain: float = LEAST_GAIN
    plausibility: int = 1


@dataclass(frozen=True, kw_only=True)
class ImageFacts:
    """What is known of the images that a model is shown.

    Args:
        height, width: in pixels.
        mean, std: of each channel, in [0, 1].
        may_resize: whether they can be resized and cropped otherwise: they are images of 8 bits.
        source_size: (height, width) that all of them have before the model's transform; None where they differ.
        is_square: whether all have as many rows as columns before it.
    """

    height: int
    width: int
    mean: Numbers
    std: Numbers
    may_resize: bool
    source_size: tuple[int, int] | None
    is_square: bool


@dataclass(frozen=True)
class SquashTransform:
    """A resize of the whole image to a square, which does not keep its proportions."""

    size: int

    def to_pixels(self, image: Image) -> Image:
        """The transformed 8-bit image."""
        return resized(image, [self.size, self.size])

    def __call__(self, image: Image) -> Tensor:
        """The same as a float tensor [C, H, W] in [0, 1]."""
        return to_tensor(self.to_pixels(image))


def hypotheses(view: View, facts: ImageFacts) -> list[Hypothesis]:
    """All that may be wrong with a view, one thing at a time."""
    return [*_normalizations(view, facts), *_ranges(view, facts), *_channels(view, facts), *_arrangements(view, facts),
            *_geometries(view, facts)]  # fmt: skip


def _normalizations(view: View, facts: ImageFacts) -> Iterator[Hypothesis]:
    given = view.model.normalization
    if given is not None:
        words = "The model normalizes its input itself, and the definition does so before."
        yield _normalized(view, None, "double normalization", words)
        if max(*given.mean, *given.std) > 1.5:
            scaled = replace(given, mean=_scaled(given.mean, 1 / 255), std=_scaled(given.std, 1 / 255))
            words = "The definition's mean and std are in units of [0, 255], and images come in [0, 1]."
            yield _normalized(view, scaled, "pixel range", words)
            return  # whether these are the right numbers shows once they are in the right units
    own = ("the images' own", facts.mean, tuple(max(value, 1e-3) for value in facts.std))
    for title, mean, std in (*PUBLISHED.get(len(facts.mean), ()), own):
        wanted = _like(given, mean, std)
        if given is None:
            words = f"The model takes normalized images ({title} mean and deviation), and gets them in [0, 1]."
            found = _normalized(view, wanted, "missing normalization", words)
        elif wanted != given:
            words = f"The model takes images with {title} mean and deviation taken out, not the definition's."
            found = _normalized(view, wanted, "other normalization", words)
        else:
            continue
        yield replace(found, plausibility=0) if title == own[0] else found


def _ranges(view: View, facts: ImageFacts) -> Iterator[Hypothesis]:
    num_channels, given = len(facts.mean), view.model.normalization
    levels = StandardNormalization((0.0,) * num_channels, (1 / 255,) * num_channels)
    is_bgr = given is not None and given.input_space == "BGR"
    if is_bgr:
        levels = replace(levels, input_space="BGR")
    yield _normalized(view, levels, "pixel range", "The model takes pixels in [0, 255], and gets them in [0, 1].")
    small = StandardNormalization((0.0,) * num_channels, (255.0,) * num_channels)
    yield _normalized(view, small, "pixel range", "The model multiplies its input by 255 itself, or takes it in 1/255.")
    if num_channels == 3:
        caffe = StandardNormalization(CAFFE_MEAN, (1 / 255,) * 3, "BGR")
        words = "The model takes blue, green and red in [0, 255] less their means (as Caffe does)."
        yield _normalized(view, caffe, "pixel range", words)


def _channels(view: View, facts: ImageFacts) -> Iterator[Hypothesis]:
    if len(facts.mean) != 3:
        return
    given = view.model.normalization or StandardNormalization((0.0,) * 3, (1.0,) * 3)
    space: Literal["RGB", "BGR"] = "RGB" if given.input_space == "BGR" else "BGR"
    turned = StandardNormalization(tuple(given.mean)[::-1], tuple(given.std)[::-1], space)
    words = f"The model takes channels in the order {space}, and gets them as {given.input_space}."
    yield _normalized(view, turned, "channel order", words)


def _arrangements(view: View, facts: ImageFacts) -> Iterator[Hypothesis]:
    if view.arrangement != "as is":
        return
    yield Hypothesis(
        fault="inverted pixels",
        words="The model takes dark as light and light as dark.",
        change="pixels inverted",
        fix="Invert the data set's pixels (255 - x), or use a model of such images.",
        view=replace(view, arrangement="inverted"),
    )
    if facts.height == facts.width:
        yield Hypothesis(
            fault="transposed images",
            words="Rows and columns of the images are exchanged.",
            change="axes exchanged",
            fix="Exchange the axes where the data set is read: height first, then width.",
            view=replace(view, arrangement="transposed"),
        )


def _geometries(view: View, facts: ImageFacts) -> Iterator[Hypothesis]:
    if not facts.may_resize or facts.height != facts.width:
        return
    side, given = facts.height, view.model.transform
    fraction = given.img_crop_size / given.img_resize_size if isinstance(given, StandardTransform) else USUAL_CROP
    if facts.source_size is not None and given is not None:
        words = f"The model takes images as they are, {facts.source_size[1]} x {facts.source_size[0]} px."
        yield _resized(view, None, words, "transform=None")
    for resize in dict.fromkeys((side, round(side / USUAL_CROP))):
        part = "the whole image (its shorter side)" if resize == side else f"the central {side}/{resize} of it"
        yield _standard(view, resize, side, f"The model takes {part} at {side} px.")
    if not facts.is_square:
        words = f"The model takes the whole image at {side} px, its proportions not kept."
        fix = f"transforms.Compose([transforms.Resize(({side}, {side})), transforms.ToTensor()])"
        yield _resized(view, SquashTransform(side), words, f"transform={fix} of torchvision")
    for other in _sizes(view.model, side):
        yield _standard(view, round(other / fraction), other, f"The model takes images of {other} px, not {side}.")


def _sizes(model: Model, side: int) -> list[int]:
    """Other sizes of input that are usual; far ones only where the model was not trained on small images."""
    is_near = [size for size in USUAL_SIZES if size != side and side / 2 <= size <= 2 * side]
    return [*is_near, *((224,) if model.label_space == "imagenet-1k" and 224 not in (*is_near, side) else ())]


def _standard(view: View, resize: int, crop: int, words: str) -> Hypothesis:
    return _resized(view, StandardTransform(resize, crop), words, f"transform=StandardTransform({resize}, {crop})")


def _resized(view: View, transform: Callable[[Image], Tensor] | None, words: str, change: str) -> Hypothesis:
    changed = replace(view, model=replace(view.model, transform=transform))
    return Hypothesis(
        fault="crop or size",
        words=words,
        change=change,
        fix=f"Give the Model {change}.",
        view=changed,
        least_gain=GEOMETRY_GAIN,
    )


def _normalized(view: View, normalization: StandardNormalization | None, fault: Fault, words: str) -> Hypothesis:
    changed = replace(view, model=replace(view.model, normalization=normalization))
    change = f"normalization={written(normalization)}"
    return Hypothesis(fault=fault, words=words, change=change, fix=f"Give the Model {change}.", view=changed)


def _like(given: StandardNormalization | None, mean: Numbers, std: Numbers) -> StandardNormalization:
    """Mean and deviation of red, green and blue in the channel order that is given."""
    if given is None or given.input_space == "RGB":
        return StandardNormalization(mean, std)
    return StandardNormalization(mean[::-1], std[::-1], "BGR")


def _scaled(values: Sequence[float], factor: float) -> Numbers:
    return tuple(value * factor for value in values)


def written(normalization: StandardNormalization | None) -> str:
    """A normalization as a definition has it."""
    if normalization is None:
        return "None"
    mean, std = (", ".join(f"{value:.4g}" for value in values) for values in (normalization.mean, normalization.std))
    ends = "," if len(normalization.mean) == 1 else ""
    space = ", input_space='BGR'" if normalization.input_space == "BGR" else ""
    return f"StandardNormalization(mean=({mean}{ends}), std=({std}{ends}){space})"
