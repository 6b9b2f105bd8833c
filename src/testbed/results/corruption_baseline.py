"""What mCE is measured by: a stored model on the same settings and samples, or the published AlexNet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from testbed.errors import UnknownNameError, suggestion
from testbed.metrics.alexnet import ALEXNET_IMAGENET_C
from testbed.metrics.corruption_error import Errors
from testbed.results.corruption import DatasetGrids, StoredGrid
from testbed.results.corruption_choice import ON_DISK
from testbed.results.numerics import arithmetic_key, network_key
from testbed.store.reader import Reader


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What mCE is measured by.

    Args:
        errors: None where there is none.
        reason: why not.
        stored: what the errors are of, where that is stored: one model, in each of the numerics that it has.
    """

    errors: Errors | None
    reason: str = ""
    stored: tuple[StoredGrid, ...] = ()

    def of(self, model: StoredGrid) -> Baseline:
        """The same for one model, in its own numerics where there are several.

        Without errors where none is in its numerics, or they are of other samples or settings than the model's.
        """
        if not self.stored:
            return self
        base = _computed_like(model, self.stored)
        if base is None:
            name = self.stored[0].evaluation.model
            reason = f"the baseline {name} was evaluated with several numerics, none of them those of {model.name}"
            return Baseline(errors=None, reason=reason)
        reason = "" if base is model else _difference(base, model)
        return Baseline(errors=None if reason else _errors(base), reason=reason, stored=(base,))


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
    if not own:
        return Baseline(errors=None, reason=f"the baseline {name} was not evaluated on {found.dataset}")
    errors = _errors(own[0])
    if len(own) > 1:
        errors = replace(errors, source=f"{name} of this store, on the same settings and in each model's own numerics")
    return Baseline(errors=errors, stored=tuple(own))


def _errors(base: StoredGrid) -> Errors:
    source = f"{base.name} of this store, on the same settings"
    return Errors.of(base.grid, name=base.evaluation.model, source=source)


def _computed_like(model: StoredGrid, known: Sequence[StoredGrid]) -> StoredGrid | None:
    """Of a baseline in several numerics that in a model's own; its only one in any case."""
    if len(known) == 1:
        return known[0]
    for key in (network_key, lambda one: arithmetic_key(one.numerics)):
        own = [one for one in known if one is model or key(one.evaluation) == key(model.evaluation)]
        if model in own or len(own) == 1:
            return model if model in own else own[0]
    return None


def _difference(base: StoredGrid, model: StoredGrid) -> str:
    """Why errors of a baseline are no measure of a model's; empty where they are."""
    where = f"the baseline {base.name} was evaluated on other"
    if _samples(base) != _samples(model):
        return f"{where} samples than {model.name}"
    for cell, group in model.groups.items():
        own, other = group[0].evaluation, base.groups.get(cell, group)[0].evaluation
        if own.setting_fingerprint != other.setting_fingerprint:
            return f"{where} settings than {model.name}, such as {other.setting}"
    return ""


def _samples(model: StoredGrid) -> set[frozenset[str]]:
    """The ids of the samples of each run; one set where all runs see the same."""
    evaluations = [run.evaluation for run in next(iter(model.groups.values()))]
    distinct = evaluations if evaluations[0].test_fraction is not None else evaluations[:1]
    return {frozenset(evaluation.sample_ids()) for evaluation in distinct}
