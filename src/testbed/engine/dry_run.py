"""What a plan would cost: every evaluation with what is missing of it, and times from one batch per model."""

from __future__ import annotations

from time import perf_counter

from testbed.cli import say
from testbed.engine.driver import probe
from testbed.engine.inline import InlineEngine
from testbed.engine.place import Place
from testbed.engine.planned import Planned
from testbed.engine.preflight import Ready, identity
from testbed.engine.unit import UnitFailure
from testbed.errors import DefinitionError


def plan_text(planned: Planned, place: Place) -> str:
    """The plan in words: each evaluation with its samples and what is missing, and the sums.

    Raises: DefinitionError: a model that was timed cannot answer its setting.
    """
    missing = {
        identity(item.ready): sum(where.stop - where.start for where in item.missing) for item in planned.pending
    }
    lines = []
    for ready in planned.preparation.distinct:
        left, total = missing.get(identity(ready), 0), ready.num_samples * ready.pairing.num_draws
        state = f"{left} of {total} samples to evaluate" if left else "stored"
        lines.append(f"{ready.pairing.model.name}  {ready.setting.name}  {state}")
    seconds = _estimated_seconds(planned, place)
    size = f"{planned.num_missing_bytes / 1e6:.1f} MB to store{_policies(planned)}"
    workers = f"{len(place.devices.names)} worker(s) on {', '.join(dict.fromkeys(place.devices.described))}"
    return "\n".join(
        [
            *lines,
            f"{len(missing)} evaluation(s), {planned.num_missing} samples to evaluate, {size}, "
            f"about {seconds:.0f} s with {workers}.",
        ]
    )


def _policies(planned: Planned) -> str:
    """How much of the logits is stored, where it is not all of them as they are."""
    policies = sorted({item.ready.pairing.store_logits for item in planned.pending})
    return "" if policies in ([], ["full"]) else f" ({', '.join(policies)})"


def _estimated_seconds(planned: Planned, place: Place) -> float:
    """Time for what is missing, from one batch per model on the first device; start-up not included."""
    engine = InlineEngine(place.worker_configs(planned.preparation.tasks))
    worker = engine.start()[0] if planned.pending else ""
    seconds_per_sample: dict[str, float] = {}
    total = 0.0
    for item in planned.pending:
        model = item.ready.model_version.fingerprint
        if model not in seconds_per_sample:
            seconds_per_sample[model] = _seconds_per_sample(engine, worker, item.ready)
        total += seconds_per_sample[model] * sum(where.stop - where.start for where in item.missing)
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
