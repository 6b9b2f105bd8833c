"""What mCE is measured by: a stored model on the same settings and samples, or the published AlexNet."""

from __future__ import annotations

from dataclasses import dataclass

from testbed.errors import DataError, UnknownNameError, suggestion
from testbed.metrics.alexnet import ALEXNET_IMAGENET_C
from testbed.metrics.corruption_error import Errors
from testbed.results.corruption import DatasetGrids, StoredGrid
from testbed.results.corruption_choice import ON_DISK
from testbed.store.reader import Reader


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What mCE is measured by.

    Args:
        errors: None where there is none.
        reason: why not.
        stored: what the errors are of, where that is stored.
    """

    errors: Errors | None
    reason: str = ""
    stored: StoredGrid | None = None

    def of(self, model: StoredGrid) -> Baseline:
        """The same for one model: without errors where these are of other samples or settings than the model's."""
        if self.stored is None or self.stored is model:
            return self
        where = f"the baseline {self.stored.name} was evaluated on other"
        if _samples(self.stored) != _samples(model):
            return Baseline(errors=None, reason=f"{where} samples than {model.name}")
        for cell, group in model.groups.items():
            own, base = group[0].evaluation, self.stored.groups.get(cell, group)[0].evaluation
            if own.setting_fingerprint != base.setting_fingerprint:
                return Baseline(errors=None, reason=f"{where} settings than {model.name}, such as {base.setting}")
        return self


def check_baseline(store: Reader, name: str) -> None:
    """Raises: UnknownNameError: a name is that of no model of the store, nor of the published AlexNet."""
    known = sorted({evaluation.model for evaluation in store.list_evaluations()} | {ALEXNET_IMAGENET_C.name})
    if name not in known:
        raise UnknownNameError(
            f"There is no baseline '{name}': no model of that name is stored. {suggestion(name, known)}".rstrip()
        )


def baseline_of(found: DatasetGrids, name: str | None) -> Baseline:
    """What the errors on a data set are measured by.

    Args: name: of a model of `found`, or that of the published AlexNet; None for none.
    Raises: DataError: the baseline is stored with several numerics.
    """
    if name is None:
        return Baseline(
            errors=None, reason="no --baseline was named, and errors that are not divided by one's are no mCE"
        )
    if name == ALEXNET_IMAGENET_C.name:
        if (found.dataset, found.family) == ("imagenet", ON_DISK):
            return Baseline(errors=ALEXNET_IMAGENET_C)
        return Baseline(errors=None, reason=f"{name} is of the published files of ImageNet-C, and these are others")
    own = [model for model in found.models if model.evaluation.model == name]
    if len(own) > 1:
        raise DataError(
            f"The baseline '{name}' was evaluated with several numerics (device, batch size, precision). Put the one "
            "that counts into a database of its own: eval.py --db-url."
        )
    if not own:
        return Baseline(errors=None, reason=f"the baseline {name} was not evaluated on {found.dataset}")
    errors = Errors.of(own[0].grid, name=name, source=f"{name} of this store, on the same settings")
    return Baseline(errors=errors, stored=own[0])


def _samples(model: StoredGrid) -> set[frozenset[str]]:
    """The ids of the samples of each run; one set where all runs see the same."""
    evaluations = [run.evaluation for run in next(iter(model.groups.values()))]
    distinct = evaluations if evaluations[0].test_fraction is not None else evaluations[:1]
    return {frozenset(evaluation.sample_ids()) for evaluation in distinct}
