"""What a plan would cost: every evaluation with what is missing of it, and times from one batch per model.

What a batch of its first setting tells of a model is taken for all its settings but those with an attack, whose steps
are many passes: their time is left unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from time import perf_counter

from testbed.cli import say
from testbed.engine.driver import probe
from testbed.engine.inline import InlineEngine
from testbed.engine.place import Place
from testbed.engine.planned import Planned
from testbed.engine.preflight import Ready, identity
from testbed.engine.schedule import Pending
from testbed.engine.unit import UnitFailure
from testbed.errors import DefinitionError

MANY = 100  # evaluations from which on a setting has one line for all models


def plan_text(planned: Planned, place: Place) -> str:
    """The plan in words: each evaluation with its samples and what is missing, and the sums.

    Raises: DefinitionError: a model that was timed cannot answer its setting.
    """
    missing = {identity(item.ready): _num_samples(item) for item in planned.pending}
    lines = [
        _line(setting, group, [missing.get(identity(ready), 0) for ready in group])
        for setting, group in _groups(planned.preparation.distinct)
    ]
    size = f"{planned.num_missing_bytes / 1e6:.1f} MB to store{_policies(planned)}"
    workers = f"{len(place.devices.names)} worker(s) on {', '.join(dict.fromkeys(place.devices.described))}"
    return "\n".join(
        [
            *lines,
            f"{len(missing)} evaluation(s), {planned.num_missing} samples to evaluate, {size}, "
            f"{_time(planned, place)} with {workers}.",
        ]
    )


def _groups(evaluations: Sequence[Ready]) -> Iterator[tuple[str, list[Ready]]]:
    """The evaluations by setting: each by itself, or all of a setting together where there are many."""
    if len(evaluations) < MANY:
        yield from ((ready.setting.name, [ready]) for ready in evaluations)
        return
    by_setting = defaultdict(list)
    for ready in evaluations:
        by_setting[ready.setting.name].append(ready)
    yield from by_setting.items()


def _line(setting: str, group: Sequence[Ready], missing: Sequence[int]) -> str:
    left, total = sum(missing), sum(ready.num_samples * ready.pairing.num_draws for ready in group)
    state = f"{left} of {total} samples to evaluate" if left else "stored"
    name = group[0].pairing.model.name if len(group) == 1 else f"{len(group)} evaluations"
    return f"{name}  {setting}  {state}"


def _time(planned: Planned, place: Place) -> str:
    """How long it would take, as far as that is known."""
    num_attacked = sum(item.ready.setting.adversarial_attack is not None for item in planned.pending)
    if num_attacked and num_attacked == len(planned.pending):
        return "for an unknown time, since attacks are not timed,"
    known = f"about {_estimated_seconds(planned, place):.0f} s"
    return f"{known}, beside an unknown time for {num_attacked} with attacks," if num_attacked else known


def _num_samples(item: Pending) -> int:
    return sum(where.stop - where.start for where in item.missing)


def _policies(planned: Planned) -> str:
    """How much of the logits is stored, where it is not all of them as they are."""
    policies = sorted({item.ready.pairing.store_logits for item in planned.pending})
    return "" if policies in ([], ["full"]) else f" ({', '.join(policies)})"


def _estimated_seconds(planned: Planned, place: Place) -> float:
    """Time for what is missing but for attacks, from one batch per model on the first device, without start-up."""
    engine = InlineEngine(place.worker_configs(planned.preparation.tasks))
    timed = [item for item in planned.pending if item.ready.setting.adversarial_attack is None]
    worker = engine.start()[0] if timed else ""
    seconds_per_sample: dict[str, float] = {}
    total = 0.0
    for item in timed:
        model = item.ready.model_version.fingerprint
        if model not in seconds_per_sample:
            seconds_per_sample[model] = _seconds_per_sample(engine, worker, item.ready)
        total += seconds_per_sample[model] * _num_samples(item)
    return total / len(place.devices.names)


def _seconds_per_sample(engine: InlineEngine, worker: str, ready: Ready) -> float:
    """Time per sample of one batch, the second time it is run: the first one loads the model."""
    unit = probe(ready, ready.pairing.batch_size)
    seconds = 0.0
    for _ in range(2):
        begin = perf_counter()
        engine.submit(worker, unit)
        result = engine.wait(0)[0].outcome
        seconds = perf_counter() - begin
        failure = result.outcomes[ready.pairing.model.name]  # type: ignore[union-attr]
        if isinstance(failure, UnitFailure):
            message = f"Model '{ready.pairing.model.name}' on '{ready.setting.name}': {failure.reason}"
            if failure.is_request_error:
                raise DefinitionError(message)
            say(f"Warning: {message}")
            return 0.0
    return seconds / (unit.stop - unit.start)
