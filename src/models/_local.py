"""Models named `local:PATH`: a user's checkpoint, with the architecture and the preprocessing told beside it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

from models._architecture import FORMS, find_architecture
from models._checkpoint import check_file, load_trained
from models.model_base import Model, StandardNormalization, StandardTransform
from testbed.errors import DefinitionError
from testbed.fingerprint import file_sha256

RESIZE_TO_CROP = 256 / 224  # the usual ImageNet protocol, kept for other sizes
UNKNOWN_LABEL_SPACE = "unknown"


@dataclass(frozen=True, kw_only=True)
class LocalModelOptions:
    """What a checkpoint does not say about itself.

    Args:
        arch: see `models._architecture.find_architecture`.
        num_classes: outputs of the network; None for the architecture's own default.
        input_size: side in pixels: the shorter side is resized to size * 256 / 224, then the centre is cropped; None
            takes images as the data set has them.
        mean, std: of the normalization, one number per channel, in [0, 1] pixel units; both or neither.
        batch_size: images per forward pass.
        label_space: whose classes the outputs are; None where only their number is known.
        weights_key: see `models._checkpoint.read_state`.
    """

    arch: str | None = None
    num_classes: int | None = None
    input_size: int | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None
    batch_size: int = 64
    label_space: str | None = None
    weights_key: str | None = None

    def __post_init__(self) -> None:
        for flag, value in (("--num-classes", self.num_classes), ("--input-size", self.input_size)):
            if value is not None and value < 1:
                raise DefinitionError(f"{flag} is {value}. It must be 1 or more.")
        if (self.mean is None) != (self.std is None):
            raise DefinitionError("Give --mean and --std together: one number per channel, in [0, 1] pixel units.")


@dataclass(frozen=True)
class LocalModels:
    """The family `local:PATH`; which files there are, nobody knows."""

    options: LocalModelOptions

    def names(self) -> tuple[str, ...]:
        """None: they are paths."""
        return ()

    def build(self, rest: str) -> Model:
        """The model `local:REST`."""
        return local_model(rest, self.options)


def local_model(path: str, options: LocalModelOptions) -> Model:
    """The model `local:PATH`; file and architecture are looked up at once, the network is built when it is loaded.

    Args:
        path: a .safetensors file, or a state dict saved by torch.
        options: architecture and preprocessing.
    Raises:
        DataError: no such file.
        DefinitionError: no architecture is given, or nothing goes by its name.
    """
    check_file(Path(path).expanduser())
    if options.arch is None:
        raise DefinitionError(f"local:{path} needs its architecture. Give --arch as {FORMS}.")
    find_architecture(options.arch)
    size, mean, std = options.input_size, options.mean, options.std
    weights = Path(path).expanduser()
    return Model(
        name=f"local:{path}",
        transform=None if size is None else StandardTransform(round(size * RESIZE_TO_CROP), size),
        classifier_loader=partial(load_trained, options.arch, options.num_classes),
        eval_batch_size=options.batch_size,
        normalization=None if mean is None or std is None else StandardNormalization(mean=mean, std=std),
        arch=options.arch,
        version=_version(options.arch),
        label_space=options.label_space or UNKNOWN_LABEL_SPACE,
        weights=weights,
        weights_key=options.weights_key,
        num_outputs=options.num_classes,
    )


def _version(arch: str) -> str:
    """What stands for the code of an architecture: the bytes of a user's file, else its name."""
    file = Path(arch.rpartition(":")[0]).expanduser()
    return f"{arch} {file_sha256(file)}" if file.suffix == ".py" and file.is_file() else arch
