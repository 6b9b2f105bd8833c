"""What an evaluation setting is to the testbed: `EvalSetting`, the data set it names, and the usual metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from testbed.class_subset import class_sublist
from testbed.errors import DefinitionError
from testbed.logit_policy import check_policy
from testbed.metrics.accuracy import accuracy_topk
from testbed.records import ClassSublist, IntArray, MetricValue, Samples, Shift
from testbed.signatures import check_arguments, check_name

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["EvalSetting", "Shift", "StandardDataset", "accuracy_topk"]

METRICS_FN_ARGUMENTS = (
    "logits", "targets", "image_paths", "py_model", "predictions", "target_ranks", "class_names", "sample_ids",
)  # fmt: skip


@dataclass(frozen=True)
class StandardDataset:
    """Names a data set by value; nothing is opened before an evaluation is planned.

    Args:
        name: a registered data set, or a folder of that name under the data root.
        path: a folder with one sub-folder of images per class, or an .npz file; relative to the data root.
        split: which part of it; None for the part the data set is evaluated on.
        corrupted: (corruption, severity) of its published copies (`Dataset.corrupted`); None for itself.
        copies: which of several sets of published copies that is, by their suffix.
    """

    name: str | None = None
    path: str | Path | None = None
    split: str | None = None
    corrupted: tuple[str, int | None] | None = None
    copies: str = "c"

    def __post_init__(self) -> None:
        if (self.name is None) == (self.path is None):
            raise DefinitionError("StandardDataset takes either name=... or path=..., one of the two.")


@dataclass(frozen=True, kw_only=True)
class EvalSetting:
    """A data set and what is done to its images before a model sees them.

    Args:
        name: what users type; unique.
        dataset: where the images come from.
        size: number of samples that must be found; None takes what the data set has.
        transform: PIL image -> PIL image, before the model's own transform.
        perturbation_fn_cpu: `f(image)`: one float tensor [C, H, W] in [0, 1] to the same.
        perturbation_fn_gpu: `f(images[, model][, targets][, keys])`: a batch [n, C, H, W] in [0, 1] to the same;
            `model` is the classifier with its normalization, `keys` draws noise that depends on the samples alone.
        metrics_fn: a function of any of logits, targets, image_paths, py_model, predictions, target_ranks, class_names
            and sample_ids (see `testbed.results`) -> dict of numbers or MetricValues, beside the built-in metrics.
            `targets` count the data set's classes, all else the setting's.
        class_sublist: columns of the logits that count, in this order; several columns in a tuple are one class, which
            has their largest logit (the sum of their votes, see `Model.answers`).
        adversarial_attack: parameters of an attack; gradients are on only then.
        idx_subsample_list: positions of the samples that are used, or `f(samples)` that tells them from the data.
        parent_eval_setting: a setting that, where complete for a model, stands for this one.
        shift: how this setting departs from its clean parent.
        excludes_conflicting: where the separation decides the noise level, it is that of the data set without the
            samples that are equal to one of another class.
        num_draws: independent draws of the perturbation per sample.
        store_logits: how much of the logits is stored: 'full', 'lossless', 'float16', 'topk:K' or 'predictions' (see
            `testbed.logit_policy`); no part of what the setting is.
        space: 'model': perturb what the model's transform gives; 'canonical': perturb at the data set's canonical size
            and let the model's resize come after.
        keeps_size: images that have the size of a model's crop already are not resized by the model's transform.
        limit: use only the first so many samples of an order that is fixed for the data set.
        version: bump it when the definition changes; without one the file is the version.
        description: one line for listings.
    """

    name: str
    dataset: StandardDataset
    size: int | None = None
    transform: Callable[[Image], Image] | None = None
    perturbation_fn_cpu: Callable[..., Any] | None = None
    perturbation_fn_gpu: Callable[..., Any] | None = None
    metrics_fn: Callable[..., Mapping[str, float | MetricValue]] | None = None
    class_sublist: Sequence[int | Sequence[int]] | None = None
    adversarial_attack: Mapping[str, Any] | None = None
    idx_subsample_list: Sequence[int] | Callable[[Samples], IntArray] | None = None
    parent_eval_setting: str | None = None
    shift: Shift | None = None
    excludes_conflicting: bool = False
    num_draws: int = 1
    store_logits: str = "full"
    space: Literal["model", "canonical"] = "model"
    keeps_size: bool = False
    limit: int | None = None
    version: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, what="EvalSetting")
        where = f"EvalSetting '{self.name}':"
        if not isinstance(self.dataset, StandardDataset):
            raise DefinitionError(f"{where} dataset must be a StandardDataset, but is {self.dataset!r}.")
        if self.size is not None and self.size < 1:
            raise DefinitionError(f"{where} size is {self.size}. It must be 1 or more.")
        if self.num_draws < 1:
            raise DefinitionError(f"{where} num_draws is {self.num_draws}. It must be 1 or more.")
        check_policy(self.store_logits, where=f"{where} store_logits")
        check_arguments(self.perturbation_fn_cpu, where=f"{where} perturbation_fn_cpu", required=("image",))
        check_arguments(self.perturbation_fn_gpu, where=f"{where} perturbation_fn_gpu", required=("images",),
                        optional=("model", "targets", "keys"))  # fmt: skip
        check_arguments(self.metrics_fn, where=f"{where} metrics_fn", required=(), optional=METRICS_FN_ARGUMENTS)
        class_sublist(self.class_sublist, where=f"{where} class_sublist")
        if self.needs_separation and not hasattr(self.perturbation_fn_gpu, "epsilon"):
            raise DefinitionError(
                f"{where} its noise level comes from the separation, so its perturbation_fn_gpu must be a dataclass "
                "with a field `epsilon`, such as UniformNoise. Or give the shift an epsilon."
            )

    @property
    def columns(self) -> ClassSublist | None:
        """The columns of `class_sublist` as plain numbers, and tuples of several; None where all count."""
        return class_sublist(self.class_sublist)

    @property
    def needs_separation(self) -> bool:
        """Whether the noise level is the data set's minimal class separation, known only once that is computed."""
        return self.shift is not None and self.shift.norm is not None and self.shift.epsilon is None

    def limited(self, limit: int) -> EvalSetting:
        """This setting on the first `limit` samples of a seeded order, compared with its clean parent on the same."""
        shift = self.shift and replace(self.shift, clean_eval_setting=f"{self.shift.clean_eval_setting}@limit{limit}")
        parent = self.parent_eval_setting and f"{self.parent_eval_setting}@limit{limit}"
        return replace(self, name=f"{self.name}@limit{limit}", limit=limit, shift=shift, parent_eval_setting=parent)

    def at_epsilon(self, epsilon: float) -> EvalSetting:
        """This setting with its noise level filled in; `epsilon` in [0, 1] pixel units."""
        if self.shift is None or not hasattr(self.perturbation_fn_gpu, "epsilon"):
            raise DefinitionError(f"EvalSetting '{self.name}' has no noise whose level could be set.")
        perturbation = replace(self.perturbation_fn_gpu, epsilon=epsilon)  # type: ignore[type-var]
        return replace(self, shift=replace(self.shift, epsilon=epsilon), perturbation_fn_gpu=perturbation)
