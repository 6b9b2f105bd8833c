"""Actions of `db.py` that look at stored evaluations: as text, as records, as files, and their metrics anew."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from testbed.cli import say
from testbed.commands.action import Options, definitions, print_json, reading, writing
from testbed.errors import UnknownNameError, suggestion
from testbed.records import MetricValue
from testbed.report import FORMER
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store


def recompute(options: Options) -> None:
    """Computes every metric again from what is stored."""
    from testbed.metric_check import repair_damaged
    from testbed.results import recompute

    definitions(options)
    with writing(options, "--recompute") as store:
        repair_damaged(store)
        say(f"Recomputed the metrics of {recompute(store)} evaluation(s).")


def print_eval(options: Options) -> None:
    """Prints the evaluations of a model on a setting."""
    from testbed.results import evaluation_record

    model, setting = options["print_eval"]
    with reading(options) as store:
        found = _evaluations(store, model=model, setting=setting)
        if options["as_json"]:
            records = [evaluation_record(evaluation) for evaluation in found]
            print_json(records[0] if len(records) == 1 else records)
        else:
            print("\n\n".join(_evaluation_text(evaluation, found) for evaluation in found))


def save_logits(options: Options) -> None:
    """Writes the logits of all models on a setting as files."""
    from testbed.store.transfer import save_logits

    setting, directory = options["save_logits"]
    with reading(options) as store:
        found = [e for e in _evaluations(store, model=None, setting=setting) if e.status == "complete"]
        say(f"Wrote {save_logits(found, Path(directory), override=options['override'])}.")


def _evaluations(store: Store, *, model: str | None, setting: str) -> list[Evaluation]:
    """The evaluations of today's definitions, or stale ones where there are no others. Raises: UnknownNameError."""
    found = store.list_evaluations(model=model, setting=setting)
    if found:
        return [evaluation for evaluation in found if not evaluation.is_stale] or found
    names = {
        "model": (model, [m.name for m in store.list_models()]),
        "setting": (setting, [s.name for s in store.list_settings()]),
    }
    hints = [suggestion(name, known) for name, known in names.values() if name is not None and name not in known]
    what = f"setting '{setting}'" if model is None else f"model '{model}' on setting '{setting}'"
    raise UnknownNameError(
        f"No evaluation of {what} is stored in {store.url}. {' '.join(filter(None, hints))} "
        "List what there is: python db.py --list-models-db --list-eval-settings-db"
    )


def _evaluation_text(evaluation: Evaluation, shown: Sequence[Evaluation]) -> str:
    """An evaluation in words, with what of its numerics tells it from the others that are shown."""
    from testbed.results.numerics import arithmetic_words, other_facts

    former = "" if evaluation.is_current else f", {FORMER}"
    stale = ", stale: its definition has changed" if evaluation.is_stale else former
    reason = f" ({evaluation.reason})" if evaluation.reason else ""
    compared = [value for values in evaluation.comparisons().values() for value in values]
    facts = [arithmetic_words(evaluation.numerics), *other_facts(evaluation.numerics, [one.numerics for one in shown])]
    return "\n".join(
        [
            f"{evaluation.model} on {evaluation.setting}: {evaluation.status}{reason}{stale}",
            f"  n = {evaluation.n}, {evaluation.num_draws} draw(s), fit seed {evaluation.fit_seed}, "
            f"noise seed {evaluation.noise_seed}",
            *([f"  computed in {way}"] if (way := ", ".join(filter(None, facts))) else []),
            *(f"  {_metric_text(value)}" for value in (*evaluation.metrics(), *compared)),
        ]
    )


def _metric_text(value: MetricValue) -> str:
    if value.value is None:
        return f"{value.name}: undefined, {value.reason}"
    if value.ci_low is None:
        return f"{value.name}: {value.value:.4f}"
    return f"{value.name}: {value.value:.2f} [{value.ci_low:.2f}, {value.ci_high:.2f}] ({value.method}, n = {value.n})"
