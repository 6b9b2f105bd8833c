"""The common corruptions, and the settings that every data set of images has of them.

`X-c.fog.3_in-memory` simulates fog at severity 3; `X-c.greyscale_in-memory` has no severity. Choices other than the
usual are in the name, the parameters before the output: `-mnist28`, `-cifar32`, `-tinyimagenet64` or `-imagenet224` for
those parameters at any size, `-uint8` for an output of 8 bits, `-jpeg85` for one that was a JPEG file, as in
`X-c.fog.3_in-memory-imagenet224-jpeg85`. `X-c.fog.3_on-disk` reads the copies that are published. The two never have
one name, for they differ by up to 14 points. Where other sets of copies are published, they have their own suffix in
place of `c`, as in `imagenet-c-bar.sparkles.3_on-disk`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from eval_settings.dataset_base import Dataset
from eval_settings.eval_setting_base import EvalSetting, Shift, StandardDataset
from registry import Registry, registry
from testbed.data.corrupted import check_published
from testbed.errors import DefinitionError, suggestion
from testbed.fingerprint import file_sha256
from testbed.perturbations.corruptions.builtin import CORRUPTIONS
from testbed.perturbations.corruptions.corrupt import Corrupt, Output
from testbed.perturbations.corruptions.corruption import NUM_SEVERITIES, Corruption

VERSION = "1"  # of the definitions below; a bump makes stored results of these settings stale
FAMILY = "common-corruption"
IN_MEMORY, ON_DISK, RESIZED = "_in-memory", "_on-disk", "-resized"
OUTPUTS: tuple[Output, ...] = tuple(output for output in get_args(Output) if output != "float")


@dataclass(frozen=True)
class InMemory:
    """`X-c.NAME.SEVERITY_in-memory[-TABLE][-OUTPUT]`: a registered corruption, simulated."""

    registry: Registry

    def names(self, dataset: Dataset) -> Iterator[str]:
        if dataset.domain == "pixels":
            for name, corruption in self.registry.corruptions.items():
                for severity in range(1, NUM_SEVERITIES + 1) if corruption.has_severities else (None,):
                    yield f"{dataset.name}-c.{_spelled(name, severity)}{IN_MEMORY}"

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        if (parts := _parts(dataset, name, IN_MEMORY)) is None:
            return None
        corrupted, suffix = parts
        corruption, severity = self._corruption(corrupted, name)
        if corruption is None:
            return None
        if dataset.domain != "pixels":
            raise DefinitionError(f"EvalSetting '{name}' is for images, but data set '{dataset.name}' has numbers.")
        _check_severity(name, corruption, severity)
        table, output = _choices(name, corruption, suffix)
        clean = dataset.corruption_parent or dataset.name
        return EvalSetting(
            name=name,
            dataset=StandardDataset(name=dataset.name),
            perturbation_fn_gpu=Corrupt(corruption=corruption, severity=severity, table=table, output=output),
            shift=Shift(family=FAMILY + suffix, name=corruption.name, severity=severity, clean_eval_setting=clean),
            space=dataset.corruption_space,
            version=_version(corruption, self.registry.corruption_source(corruption.name)),
            description=_description(dataset, corruption.name, severity, "simulated" + suffix.replace("-", ", ")),
        )

    def _corruption(self, corrupted: str, name: str) -> tuple[Corruption | None, int | None]:
        """What `fog.3` names; no corruption where no such is registered."""
        known = self.registry.corruptions
        if corrupted in known:
            return known[corrupted], None
        corruption, severity = _with_severity(corrupted, name, known)
        return (known[corruption], severity) if corruption else (None, None)


@dataclass(frozen=True)
class OnDisk:
    """`X-SUFFIX.NAME.SEVERITY_on-disk`: the copies that are published, as published; SUFFIX is `c` for the usual ones.

    `..._on-disk-resized` for copies that were resized and cropped before they were corrupted: a model's transform
    resizes and crops them once more, as the ImageNet Testbed does.
    """

    registry: Registry

    def names(self, dataset: Dataset) -> Iterator[str]:
        for suffix, copies in dataset.copies.items():
            for name, severities in copies.severities.items():
                for severity in severities or (None,):
                    yield f"{dataset.name}-{suffix}.{_spelled(name, severity)}{ON_DISK}"

    def build(self, dataset: Dataset, name: str) -> EvalSetting | None:
        found = ((kind, _parts(dataset, name, ON_DISK, kind)) for kind in dict.fromkeys(("c", *dataset.copies)))
        return next((self._of_set(dataset, name, kind, *parts) for kind, parts in found if parts is not None), None)

    def _of_set(self, dataset: Dataset, name: str, kind: str, corrupted: str, suffix: str) -> EvalSetting | None:
        """The setting of a set of copies, which is told by its own suffix `kind`."""
        known = {*(dataset.copies[kind].severities if kind in dataset.copies else ()), *self.registry.corruptions}
        corruption, severity = (corrupted, None) if corrupted in known else _with_severity(corrupted, name, known)
        if corruption is None:
            return None
        copies = check_published(dataset, corruption, severity, suffix=kind)
        is_cropped = copies.cropped_size is not None
        if suffix not in (("", RESIZED) if is_cropped else ("",)):
            ends = f"'{ON_DISK}{RESIZED}' or '{ON_DISK}'" if is_cropped else f"'{ON_DISK}'"
            raise DefinitionError(f"EvalSetting '{name}' ends in '{suffix}', which means nothing. End it in {ends}.")
        clean = copies.clean_setting or dataset.corruption_parent or dataset.name
        return EvalSetting(
            name=name,
            dataset=StandardDataset(
                name=dataset.name, split=copies.clean_split, corrupted=(corruption, severity), copies=kind
            ),
            shift=Shift(
                family=f"{FAMILY}-on-disk{'' if kind == 'c' else '-' + kind}{suffix}",
                name=corruption,
                severity=severity,
                clean_eval_setting=clean,
            ),
            keeps_size=is_cropped and suffix != RESIZED,
            version=VERSION,
            description=_description(
                dataset, corruption, severity, f"as {copies.title} has it{suffix.replace('-', ', ')}"
            ),
        )


def _parts(dataset: Dataset, name: str, mode: str, kind: str = "c") -> tuple[str, str] | None:
    """(`fog.3`, suffix) of a name with this mode and set of copies; None for a name that is none of these."""
    prefix = f"{dataset.name}-{kind}."
    corrupted, found, suffix = name.removeprefix(prefix).partition(mode)
    is_one = name.startswith(prefix) and found and "@" not in name and (not suffix or suffix.startswith("-"))
    return (corrupted, suffix) if is_one else None


def _with_severity(corrupted: str, name: str, known: Iterable[str]) -> tuple[str | None, int | None]:
    """What `fog.3` names; None where it is no known corruption. Raises: DefinitionError: the severity is not 1 to 5."""
    corruption, _, severity = corrupted.rpartition(".")
    if corruption not in known:
        return None, None
    if severity not in map(str, range(1, NUM_SEVERITIES + 1)):
        nearest = NUM_SEVERITIES if severity.isdecimal() and int(severity) > NUM_SEVERITIES else 1
        usual = name.replace(f".{corrupted}_", f".{corruption}.{nearest}_")
        raise DefinitionError(
            f"EvalSetting '{name}' has severity '{severity}'. Severities go from 1 to {NUM_SEVERITIES}. Did you mean "
            f"{usual}?"
        )
    return corruption, int(severity)


def _check_severity(name: str, corruption: Corruption, severity: int | None) -> None:
    if corruption.has_severities == (severity is not None):
        return
    has, usual = ("has no severities", "") if severity is not None else ("comes at severities 1 to 5", ".3")
    right = name.replace(f"-c.{_spelled(corruption.name, severity)}_", f"-c.{corruption.name}{usual}_")
    raise DefinitionError(f"EvalSetting '{name}': {corruption.name} {has}. Did you mean {right}?")


def _choices(name: str, corruption: Corruption, suffix: str) -> tuple[str | None, Output]:
    """The table and the output that a suffix such as `-mnist28-uint8` names; None and 'float' where it does not."""
    words = suffix.split("-")[1:]
    tables = tuple(corruption.parameters)
    table = words.pop(0) if words and words[0] in tables else None
    output: Output | None = next((known for known in OUTPUTS if [known] == words[:1]), None)
    words = words[output is not None :]
    if words:
        hint = suggestion(words[0], {*tables, *OUTPUTS} - {words[0]})
        kinds = " and ".join(f"one of {', '.join(kind)}" for kind in (tables, OUTPUTS) if kind)
        raise DefinitionError(
            f"EvalSetting '{name}' ends in '-{words[0]}', which has no place there. {hint}{' ' * bool(hint)}It may end "
            f"in {kinds}, in this order."
        )
    return table, output or "float"


def _spelled(corruption: str, severity: int | None) -> str:
    return corruption if severity is None else f"{corruption}.{severity}"


def _description(dataset: Dataset, corruption: str, severity: int | None, how: str) -> str:
    at = "" if severity is None else f" at severity {severity}"
    return f"{dataset.name} under {corruption.replace('_', ' ')}{at}, {how}"


def _version(corruption: Corruption, source: Path | None) -> str:
    """That of this file, and of the file that registers a corruption where that declares no version of its own."""
    if corruption.version is not None:
        return VERSION
    return f"{VERSION}, {'in memory' if source is None else file_sha256(source)}"


for row in CORRUPTIONS:
    registry.add_corruption(row)
for family in (InMemory(registry), OnDisk(registry)):
    registry.add_eval_setting_family(family)
