"""What a data set is to the testbed: where its samples come from, and the facts its settings are derived from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Literal

from eval_settings.source_base import DataSource
from testbed.errors import DefinitionError, suggestion
from testbed.records import Samples
from testbed.run_split import RunSplit
from testbed.signatures import check_arguments, check_name

Loader = Callable[..., Any]  # see `Dataset`


@dataclass(frozen=True, kw_only=True)
class CorruptedCopies:
    """Corrupted copies of a data set's samples that somebody published, such as CIFAR-10-C.

    Args:
        title: what they are called.
        severities: by name of the corruption those that are published; none for one that comes without severities.
        load: `load(clean, corruption, severity, data_root)` -> Samples: copies of the clean Samples, in the same order
            and under the same ids. `corruption` and `severity` are as in `severities`, None for no severity.
        clean_split: the split that these are copies of; None for the one that is evaluated.
        clean_setting: the setting that they are compared with; None for that of `Dataset.corruption_parent`.
        cropped_size: side in pixels to which images were resized and cropped before; a model with a crop of that size
            then takes them as they are. None where they have the size of the clean ones.
        suffix: settings of them are named `X-SUFFIX.NAME.SEVERITY_on-disk`, X being the data set.
        origin: where people get them.
    """

    title: str
    severities: Mapping[str, tuple[int, ...]]
    load: Callable[..., Samples]
    clean_split: str | None = None
    clean_setting: str | None = None
    cropped_size: int | None = None
    suffix: str = "c"
    origin: DataSource | None = None

    def __post_init__(self) -> None:
        where = f"CorruptedCopies '{self.title}':"
        check_name(self.suffix, what=f"{where} suffix")
        check_arguments(self.load, where=f"{where} load", required=("clean", "corruption", "severity", "data_root"))
        for name, severities in self.severities.items():
            check_name(name, what=f"{where} corruption")
            if outside := [severity for severity in severities if severity not in range(1, 6)]:
                raise DefinitionError(f"{where} '{name}' has severity {outside[0]!r}. Severities go from 1 to 5.")


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set by name; registering it gives its clean, noise and separation-based settings at once.

    Args:
        name: what users type; the clean setting bears the same name.
        loader: `loader(split[, data_root])` -> Samples, or arrays `(images, classes)` or `(images, classes,
            class_names)` (see `testbed.data.arrays`); or give `path`.
        path: a folder with one sub-folder of images per class, or an .npz file with `x` and `y`.
        label_space: whose classes these are; models are found by it. None where only the number of classes is known.
        splits: the parts that can be loaded.
        eval_split: the part that settings evaluate.
        fit_split: the part that models fitted in a run are fitted on; None where there is none.
        test_fraction: in every run this part of `eval_split`, drawn by the run's seed, is evaluated, and models fitted
            in the run are fitted on the rest of it (see `testbed.run_split`); None where all runs evaluate the same.
        separation_splits: the parts that the separation is searched over, together; all by default.
        canonical_size: side in pixels of the space in which separation is computed and noise is drawn; None where all
            images have one size and that is the space.
        color_mode: 'L' or 'RGB': what image files are decoded to.
        class_order: how folder names map to classes where their names do not tell: 'numeric', 'lexicographic', a file
            with one class name per line, or the class names themselves.
        domain: 'pixels' lie in [0, 1] and stay there under noise; 'numbers' have no bounds.
        noise_levels: levels that listings show, as `X-noise-NORM-LEVEL`; any other level can be asked for as well.
        corruption_space: where corruptions are simulated: 'canonical', at the canonical size; 'model', at the size that
            a model's transform ends in, as the ImageNet Testbed does.
        corruption_parent: the clean setting that corruptions are compared with; None for that of the data set's name.
        corrupted: published copies of its samples, for `X-c.NAME.SEVERITY_on-disk`; a tuple for several sets of them.
        derives: whether it has noise, separation and corruption settings; else it has those that are registered alone.
        source: where people get it.
        chosen_against: the model whose mistakes its images were chosen for, so that few right answers are no wonder.
        description: one line for listings.
    """

    name: str
    loader: Loader | None = None
    path: Path | None = None
    label_space: str | None = None
    splits: tuple[str, ...] = ("test",)
    eval_split: str = "test"
    fit_split: str | None = None
    test_fraction: float | None = None
    separation_splits: tuple[str, ...] | None = None
    canonical_size: int | None = None
    color_mode: Literal["L", "RGB"] = "RGB"
    class_order: Literal["numeric", "lexicographic"] | Path | tuple[str, ...] | None = None
    domain: Literal["pixels", "numbers"] = "pixels"
    noise_levels: tuple[float, ...] = ()
    corruption_space: Literal["canonical", "model"] = "canonical"
    corruption_parent: str | None = None
    corrupted: CorruptedCopies | tuple[CorruptedCopies, ...] | None = field(default=None, hash=False)  # has mappings
    derives: bool = True
    source: DataSource | None = field(default=None, hash=False)
    chosen_against: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, what="Dataset")
        where = f"Dataset '{self.name}':"
        if (self.loader is None) == (self.path is None):
            raise DefinitionError(f"{where} give either loader=... or path=..., one of the two.")
        check_arguments(self.loader, where=f"{where} loader", required=("split",), optional=("data_root",))
        named = (self.eval_split, self.fit_split, *(copies.clean_split for copies in self.copies.values()))
        known = {split for split in named if split} | set(self.separation_splits or ())
        if unknown := sorted(known - set(self.splits)):
            raise DefinitionError(f"{where} has no split {', '.join(unknown)}. Its splits: {', '.join(self.splits)}.")
        if self.test_fraction is not None:
            RunSplit(test_fraction=self.test_fraction)
            if self.fit_split not in (None, self.eval_split):
                raise DefinitionError(
                    f"{where} test_fraction splits '{self.eval_split}' anew in every run, so models cannot be fitted "
                    f"on '{self.fit_split}'. Leave fit_split or test_fraction out."
                )
        if self.canonical_size is not None and self.canonical_size < 1:
            raise DefinitionError(f"{where} canonical_size is {self.canonical_size}. It must be 1 or more pixels.")
        if self.domain not in ("pixels", "numbers"):
            raise DefinitionError(f"{where} domain is {self.domain!r}. Use 'pixels' or 'numbers'.")
        if self.corruption_space not in ("canonical", "model"):
            raise DefinitionError(f"{where} corruption_space is {self.corruption_space!r}. Use 'canonical' or 'model'.")
        for level in self.noise_levels:
            if not 0 < level < float("inf") or float(f"{level:g}") != level:
                raise DefinitionError(
                    f"{where} noise level {level!r}. It must be a positive number of at most six digits."
                )

    @property
    def copies(self) -> dict[str, CorruptedCopies]:
        """Published corrupted copies, by the suffix that their settings are named with."""
        sets = (self.corrupted,) if isinstance(self.corrupted, CorruptedCopies) else self.corrupted or ()
        found = {copies.suffix: copies for copies in sets}
        if len(found) < len(sets):
            raise DefinitionError(f"Dataset '{self.name}': two sets of corrupted copies have one suffix. Rename one.")
        return found

    @property
    def canonical_setting(self) -> str:
        """Name of the clean setting in the canonical space, for models that resize images themselves."""
        return f"{self.name}@{self.canonical_size}px" if self.canonical_size else f"{self.name}@canonical"


def completed_dataset(dataset: Dataset | str, data: str | Path | Loader | None, facts: Mapping[str, Any]) -> Dataset:
    """The given data set, or the one of a name, a folder, .npz file or loader, and other fields.

    Raises: DefinitionError: there are no data, or something is no field of a data set.
    """
    if not isinstance(dataset, str):
        if data is not None or facts:
            raise DefinitionError("add_dataset takes a Dataset alone, or a name, its data and the fields of a Dataset.")
        return dataset
    known = {field.name for field in fields(Dataset)} - {"name", "path", "loader"}
    if unknown := sorted(set(facts) - known):
        raise DefinitionError(
            f"Dataset '{dataset}': there is no {unknown[0]}. {suggestion(unknown[0], known)} "
            f"What can be said of a data set: {', '.join(sorted(known))}."
        )
    if callable(data):
        return Dataset(name=dataset, loader=data, **facts)
    return Dataset(name=dataset, path=None if data is None else Path(data).expanduser(), **facts)
