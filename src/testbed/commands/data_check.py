"""The action of `db.py` that looks whether data lie on disk as they should; nothing is downloaded or decoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from registry import Registry
from testbed.cli import say
from testbed.commands.action import Options, definitions, print_json
from testbed.data.data_check import DataCheck, check_dataset, check_setting
from testbed.offline import without_downloads


def check_data(options: Options) -> int:
    """Prints what was found of each, a line for what is right and one for each fault; 1 where anything is wrong."""
    found = []
    with without_downloads("nothing is downloaded for a look"):
        for check in _checks(options):
            found.append(check)
            if not options["as_json"]:
                print("\n".join(_lines(check)), flush=True)
    if options["as_json"]:
        print_json([_record(check) for check in found])
    num_wrong = sum(check.is_wrong for check in found)
    say(f"Checked {len(found)}: {f'{num_wrong} wrong' if num_wrong else 'all as they should be'}.")
    return 1 if num_wrong else 0


def _checks(options: Options) -> Iterator[DataCheck]:
    """Of the data sets that are named, and of the settings; a name that both have is the data set's."""
    registry = definitions(options)
    root = options["data_root"]
    datasets = [name for name in options["check_data"] if name in registry.datasets]
    names = registry.expand("eval-setting", [name for name in options["check_data"] if name not in datasets])
    settings = [registry.eval_setting(name) for name in names]  # a wrong name is told before anything is looked at
    for name in datasets:
        say(f"Reading every file of {name}.")
        yield from check_dataset(
            registry.dataset(name),
            evaluated=_evaluated(registry, name),
            columns=registry.eval_setting(name).columns if name in registry.eval_setting_names() else None,
            data_root=root,
        )
    for setting in settings:
        say(f"Reading every file of {setting.name}.")
        yield check_setting(setting, data_root=root)


def _evaluated(registry: Registry, dataset: str) -> set[str]:
    """The splits of a data set that registered settings name."""
    own = (registry.eval_setting(name) for name in registry.eval_setting_names() if not registry.is_derived(name))
    return {str(setting.dataset.split) for setting in own if setting.dataset.name == dataset and setting.dataset.split}


def _record(check: DataCheck) -> dict[str, Any]:
    place = None if check.place is None else str(check.place)
    return {**asdict(check), "place": place, "faults": list(check.faults), "notes": list(check.notes)}


def _lines(check: DataCheck) -> Iterator[str]:
    yield from (f"{check.what}: note: {note}" for note in check.notes)
    if check.faults:
        verdict = "wrong" if check.is_needed else "not usable, but no setting evaluates it"
        yield from (f"{check.what}: {verdict}: {fault}" for fault in check.faults)
        return
    where = "" if check.place is None else f" in {check.place}"
    yield (
        f"{check.what}: right: {check.num_samples:,} samples of {check.num_classes:,} classes{where}, content "
        f"{check.content}"
    )
