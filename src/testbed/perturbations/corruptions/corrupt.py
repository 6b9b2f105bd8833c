"""A corruption at a severity as the perturbation of a setting: which parameters, and how its output is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from testbed.errors import DefinitionError, ShapeError
from testbed.perturbations.checks import checked_images
from testbed.perturbations.corruptions.corruption import TABLES, Corruption, Parameters, usual_table
from testbed.perturbations.corruptions.output import as_jpeg, truncated
from testbed.randomness import SampleKeys

if TYPE_CHECKING:
    from torch import Tensor

Output = Literal["float", "uint8", "jpeg85"]
SMALLEST_SIDE = 8  # pixels
JPEG_QUALITY = 85  # of the published ImageNet-C and Tiny-ImageNet-C


@dataclass(frozen=True, kw_only=True)
class Corrupt:
    """A corruption of images, at a severity.

    Args:
        corruption: which.
        severity: 1 to 5; None for a corruption without severities.
        table: whose parameters: 'imagenet224', 'tinyimagenet64', 'cifar32' or 'mnist28'; None for those of the images'
            size (shorter side up to 48 px: CIFAR's, up to 128 px: Tiny-ImageNet's, else ImageNet's).
        output: 'float', as it is; 'uint8', cut to 8 bits (downwards, as the published files are); 'jpeg85', also
            written as JPEG of quality 85, as ImageNet-C and Tiny-ImageNet-C are.
        options: other choices than the published data's, see `Corruption.options`.
    Source: Hendrycks & Dietterich, Benchmarking Neural Network Robustness to Common Corruptions and Perturbations,
        ICLR 2019.
    """

    corruption: Corruption
    severity: int | None
    table: str | None = None
    output: Output = "float"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        where = f"Corruption '{self.corruption.name}'"
        if self.output not in get_args(Output):
            raise DefinitionError(f"{where} has output {self.output!r}. Use one of {', '.join(get_args(Output))}.")
        for name, value in self.options.items():
            allowed = self.corruption.options.get(name)
            if allowed is None or value not in allowed:
                known = [f"{key} in {choices}" for key, choices in self.corruption.options.items()]
                raise DefinitionError(f"{where} has no option {name}={value!r}. It has {'; '.join(known) or 'none'}.")
        tables = self.corruption.parameters
        self.corruption.at(self.severity, self.table or next(iter(tables), ""))

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers: if not, all draws and seeds are the same."""
        return self.corruption.is_random

    def at_size(self, height: int, width: int) -> Corrupt:
        """The same with the table that images of this size, in pixels, get. Raises: DefinitionError: it has none."""
        table = self.table or (usual_table(height, width) if self.corruption.has_severities else None)
        self.corruption.at(self.severity, table or "")
        return replace(self, table=table)

    def parameters(self, height: int, width: int) -> Parameters:
        """The arguments of the corruption's function for images of this size, in pixels."""
        return {**self.corruption.at(self.severity, self.at_size(height, width).table or ""), **self.options}

    def identity(self) -> dict[str, Any]:
        """What it is, for a fingerprint: with the values of its table, or of each table that a size may choose."""
        tables = [self.table] if self.table else [name for name, longest in TABLES.items() if longest is not None]
        rows = {name: dict(self.corruption.at(self.severity, name)) for name in tables if self._has(name)}
        return {
            "corruption": self.corruption.name,
            "version": self.corruption.version,
            "severity": self.severity,
            "table": self.table or ", ".join(f"{name} up to {TABLES[name]} px" for name in tables),
            "parameters": rows,
            "output": self.output,
            "options": dict(self.options),
            "files": self.corruption.files() if self.corruption.files else None,
        }

    def _has(self, table: str) -> bool:
        return table in self.corruption.parameters

    def check_shape(self, shape: tuple[int, ...]) -> None:
        """Raises an error unless images (n, C, H, W) of this shape can be corrupted.

        Raises:
            ShapeError: other channels, or fewer pixels.
            DefinitionError: the corruption has no parameters for this size.
        """
        if len(shape) != 4 or shape[1] not in (1, 3) or min(shape[2:]) < SMALLEST_SIDE:
            raise ShapeError(
                f"Corruption '{self.corruption.name}' was asked for images of shape {shape}. It takes (n, C, H, W) "
                f"with 1 or 3 channels and at least {SMALLEST_SIDE} x {SMALLEST_SIDE} pixels."
            )
        self.at_size(*shape[2:])

    def __call__(self, images: Tensor, *, keys: SampleKeys) -> Tensor:
        """`images` corrupted, as a new tensor.

        Args:
            images: (n, C, H, W) float32 in [0, 1], C = 1 or 3, H and W from 8 px.
            keys: of the n samples.
        Returns: (n, C, H, W) float32 in [0, 1], on the device of `images`; the same in any batch.
        Raises:
            ShapeError: images of another shape, or `keys` of another number of samples.
            DataError: images are not float32, or not in [0, 1].
            DefinitionError: the corruption has no parameters for this size.
        """
        self.check_shape(tuple(images.shape))
        images = checked_images(images, keys, what=f"Corruption '{self.corruption.name}'")
        arguments = dict(self.parameters(images.shape[2], images.shape[3]))
        if self.corruption.is_random:
            arguments["keys"] = keys
        corrupted: Tensor = self.corruption.function(images, **arguments)
        if self.output == "float":
            return corrupted
        return truncated(corrupted) if self.output == "uint8" else as_jpeg(truncated(corrupted), quality=JPEG_QUALITY)
