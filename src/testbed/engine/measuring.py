"""What a plan leaves open, measured on its devices: batch sizes, and where perturbations are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

from eval_settings.eval_setting_base import EvalSetting
from testbed.cli import say
from testbed.engine.cards import device_name
from testbed.engine.measured import Measured
from testbed.engine.place import Place
from testbed.engine.plan import batch_size_of
from testbed.engine.preflight import LARGE_UNIT_SAMPLES, Preparation, Ready, shard_size
from testbed.engine.schedule import Pending, make_units
from testbed.engine.unit import Unit, WorkerConfig
from testbed.results.numerics import PERTURBED_ON, stored_places
from testbed.signatures import argument_names
from testbed.store.reader import Reader
from testbed.worker.measure import cheaper_places, largest_batches

Measure = Callable[[WorkerConfig, Sequence[Unit]], Iterable[Any]]


def with_measured_batches(preparation: Preparation, place: Place) -> Preparation:
    """The plan with the batch size of every model that is the largest safe one on all of its devices.

    It is one size for all settings of a model with images of one shape; that of attacks, which are not run for it,
    follows. A model that is fitted in the run keeps its own: it would have to be fitted first. So does one that cannot
    be measured.
    """
    groups: dict[tuple[Any, ...], list[Ready]] = {}
    for ready in preparation.evaluations:
        if not ready.pairing.model.is_fitted and ready.setting.adversarial_attack is None:
            groups.setdefault(_of_one_size(ready, preparation), []).append(ready)
    examples = {key: max(group, key=_usefulness) for key, group in groups.items()}
    sizes: dict[tuple[Any, ...], int] = {}
    for device in _kinds(place):
        questions = {key: _batch_question(ready, preparation, place, device) for key, ready in examples.items()}
        found = _answers(largest_batches, "batch size", questions, examples, preparation, place, device)
        for key, size in found.items():
            sizes[key] = min(size, sizes.get(key, LARGE_UNIT_SAMPLES))  # what workers take in turn is whole batches
    for key, group in groups.items():
        name = group[0].pairing.model.name
        what = f"{sizes[key]} images" if key in sizes else f"its own {group[0].pairing.batch_size}, as none was found"
        say(f"Notice: a batch of {name} is {what}.")
    found_sizes = [sizes.get(_of_one_size(ready, preparation)) for ready in preparation.evaluations]
    evaluations = zip(preparation.evaluations, found_sizes, strict=True)
    return replace(
        preparation, evaluations=tuple(ready if size is None else _resized(ready, size) for ready, size in evaluations)
    )


def with_places(preparation: Preparation, place: Place, store: Reader) -> Preparation:
    """The plan with the device that each perturbation is computed on: the cheaper one, or the one that is asked for.

    On the CPU there is nothing to choose, nor for perturbations that only their network's device can compute. The
    place is part of what an evaluation is, since two devices agree to rounding only. So a setting that is stored keeps
    the place that it has there: a clock that decides otherwise on another machine must not have it evaluated anew.
    """
    if place.devices.names[0] == "cpu" or place.perturbs_on == "device":
        return preparation
    movable = {ready.task: ready for ready in preparation.evaluations if can_perturb_on_cpu(ready.setting)}
    chosen: dict[int, str] = dict.fromkeys(movable, "cpu")
    if place.perturbs_on == "auto":
        device, settings = place.devices.names[0], {task: r.setting_version.fingerprint for task, r in movable.items()}
        stored = stored_places(store, set(settings.values()))
        chosen = {task: stored[setting] for task, setting in settings.items() if setting in stored}
        left = {task: ready for task, ready in movable.items() if task not in chosen}
        questions = {task: _place_question(ready, preparation, device) for task, ready in left.items()}
        chosen |= _answers(cheaper_places, "place of perturbation", questions, left, preparation, place, device)
    on_cpu = {task for task, where in chosen.items() if where == "cpu"}
    tasks = tuple(
        replace(task, perturbs_on="cpu" if position in on_cpu else "device")
        for position, task in enumerate(preparation.tasks)
    )
    evaluations = tuple(_moved(ready) if ready.task in on_cpu else ready for ready in preparation.evaluations)
    return replace(preparation, tasks=tasks, evaluations=evaluations)


def _answers(
    measure: Measure,
    what: str,
    questions: Mapping[Any, Mapping[str, Any]],
    examples: Mapping[Any, Ready],
    preparation: Preparation,
    place: Place,
    device: str,
) -> dict[Any, Any]:
    """By key the answers to questions, from the cache, or measured on a device and remembered; no answer, no key."""
    known = Measured(place.cache_root)
    found = {key: answer for key, question in questions.items() if (answer := known.get(question)) is not None}
    open_keys = [key for key in questions if key not in found]
    if not open_keys:
        return found
    say(f"Measuring the best {what} on {device}, {len(open_keys)} to find.")
    configs = place.worker_configs(preparation.tasks)
    config = next(config for config in configs if config.device == device)
    units = [_example(examples[key]) for key in open_keys]
    for key, answer in zip(open_keys, measure(config, units), strict=True):
        if answer is not None:
            found[key] = answer
            known.put(questions[key], answer)
    return found


def _example(ready: Ready) -> Unit:
    return make_units([Pending(ready, (ready.shards[0],))])[0]


def _kinds(place: Place) -> list[str]:
    """One device of each kind."""
    return list({device_name(device): device for device in reversed(place.devices.distinct)}.values())


def _of_one_size(ready: Ready, preparation: Preparation) -> tuple[Any, ...]:
    shape = preparation.tasks[ready.task].bank.shape[1:]
    return ready.model_version.fingerprint, shape


def _usefulness(ready: Ready) -> tuple[int, bool]:
    """What a batch size is better found on: many samples, which limit it, and no perturbation."""
    return ready.num_samples, ready.setting.shift is None


def _batch_question(ready: Ready, preparation: Preparation, place: Place, device: str) -> dict[str, Any]:
    model, shape = _of_one_size(ready, preparation)
    return {
        "what": "batch size",
        "model": model,
        "shape": list(shape),
        "most": min(1 << ready.num_samples.bit_length() - 1, LARGE_UNIT_SAMPLES),  # no batch is larger than the data
        "arithmetic": asdict(place.arithmetic),
        "device": device_name(device),
        "sharing": place.devices.names.count(device),
        "threads": place.threads,
        "torch": version("torch"),
    }


def _place_question(ready: Ready, preparation: Preparation, device: str) -> dict[str, Any]:
    return {
        "what": "place of perturbation",
        "setting": ready.setting_version.fingerprint,
        "shape": list(preparation.tasks[ready.task].bank.shape[1:]),
        "device": device_name(device),
        "torch": version("torch"),
    }


def can_perturb_on_cpu(setting: EvalSetting) -> bool:
    """Whether the CPU can perturb for a network on another device: with `keys` alone, the same noise comes of it."""
    arguments = argument_names(setting.perturbation_fn_gpu) if setting.perturbation_fn_gpu else ()
    return "keys" in arguments and "model" not in arguments


def _moved(ready: Ready) -> Ready:
    return replace(ready, key=replace(ready.key, numerics={**ready.key.numerics, PERTURBED_ON: "cpu"}))


def _resized(ready: Ready, found: int) -> Ready:
    batch_size = batch_size_of(ready.setting, ready.pairing.model, found)
    return replace(
        ready,
        pairing=replace(ready.pairing, batch_size=batch_size),
        key=replace(ready.key, numerics={**ready.key.numerics, "batch_size": batch_size}),
        shard_size=shard_size(ready.pairing.model, ready.num_samples, batch_size),
    )
