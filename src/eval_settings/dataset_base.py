"""What a data set is to the testbed: where its samples come from, and the facts its settings are derived from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from testbed.errors import DefinitionError
from testbed.records import Samples
from testbed.run_split import RunSplit
from testbed.signatures import check_arguments, check_name


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """A data set by name; registering it gives its clean, noise and separation-based settings at once.

    Args:
        name: what users type; the clean setting bears the same name.
        loader: `loader(split[, data_root])` -> Samples; or give `path`.
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
        description: one line for listings.
    """

    name: str
    loader: Callable[..., Samples] | None = None
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
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, what="Dataset")
        where = f"Dataset '{self.name}':"
        if (self.loader is None) == (self.path is None):
            raise DefinitionError(f"{where} give either loader=... or path=..., one of the two.")
        check_arguments(self.loader, where=f"{where} loader", required=("split",), optional=("data_root",))
        known = {self.eval_split, *((self.fit_split,) if self.fit_split else ()), *(self.separation_splits or ())}
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
        for level in self.noise_levels:
            if not 0 < level < float("inf") or float(f"{level:g}") != level:
                raise DefinitionError(
                    f"{where} noise level {level!r}. It must be a positive number of at most six digits."
                )

    @property
    def canonical_setting(self) -> str:
        """Name of the clean setting in the canonical space, for models that resize images themselves."""
        return f"{self.name}@{self.canonical_size}px" if self.canonical_size else f"{self.name}@canonical"
