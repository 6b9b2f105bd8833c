"""What stands behind `db.py`: its actions, in the order in which they run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from testbed.cli import say
from testbed.commands.places import database_url, log_database_url
from testbed.errors import UnknownNameError, suggestion
from testbed.records import MetricValue
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store

Options = Mapping[str, Any]


def database_command(**options: Any) -> int:
    """Runs the actions of `db.py` that were asked for, in the documented order, up to the first that fails."""
    for name, action in ACTIONS.items():
        if options[name]:
            action(options)
    return 0


def _list_models_registry(options: Options) -> None:
    registry = _definitions(options)
    _print_names([*registry.model_names(), "local:PATH"])


def _list_eval_settings_registry(options: Options) -> None:
    _print_names(_definitions(options).eval_setting_names())


def _list_models_db(options: Options) -> None:
    with _reading(options) as store:
        _print_names(sorted({model.name for model in store.list_models() if not model.hidden}))


def _list_eval_settings_db(options: Options) -> None:
    with _reading(options) as store:
        _print_names(sorted({setting.name for setting in store.list_settings() if not setting.hidden}))


def _recompute(options: Options) -> None:
    from testbed.results import recompute

    _definitions(options)
    with Store.open(_url(options), create=False) as store:
        store.lock("db.py --recompute")
        say(f"Recomputed the metrics of {recompute(store)} evaluation(s).")


def _print_eval(options: Options) -> None:
    from testbed.results import evaluation_record

    model, setting = options["print_eval"]
    with _reading(options) as store:
        found = _evaluations(store, model=model, setting=setting)
        if options["as_json"]:
            records = [evaluation_record(evaluation) for evaluation in found]
            print(json.dumps(records[0] if len(records) == 1 else records, indent=1, allow_nan=False))
        else:
            print("\n\n".join(map(_evaluation_text, found)))


def _save_logits(options: Options) -> None:
    from testbed.store.transfer import save_logits

    setting, directory = options["save_logits"]
    with _reading(options) as store:
        found = [e for e in _evaluations(store, model=None, setting=setting) if e.status == "complete"]
        say(f"Wrote {save_logits(found, Path(directory), override=options['override'])}.")


ACTIONS: dict[str, Callable[[Options], None]] = {
    "list_models_registry": _list_models_registry,
    "list_eval_settings_registry": _list_eval_settings_registry,
    "list_models_db": _list_models_db,
    "list_eval_settings_db": _list_eval_settings_db,
    "recompute": _recompute,
    "print_eval": _print_eval,
    "save_logits": _save_logits,
}


def _definitions(options: Options) -> Any:
    from registry import registry
    from testbed.definitions import Sources, load_definitions, plugin_paths

    for failure in load_definitions(Sources(plugins=plugin_paths(options["plugins"]))):
        say(f"Warning: {failure.path} was not imported: {failure.reason}")
    return registry


def _url(options: Options) -> str:
    return log_database_url(options["logdir"]) if options["logdir"] else database_url(options["db_url"])


def _reading(options: Options) -> Store:
    return Store.open(_url(options), read_only=True, create=False)


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


def _evaluation_text(evaluation: Evaluation) -> str:
    stale = ", stale: its definition has changed" if evaluation.is_stale else ""
    reason = f" ({evaluation.reason})" if evaluation.reason else ""
    compared = [value for values in evaluation.comparisons().values() for value in values]
    return "\n".join(
        [
            f"{evaluation.model} on {evaluation.setting}: {evaluation.status}{reason}{stale}",
            f"  n = {evaluation.n}, {evaluation.num_draws} draw(s), fit seed {evaluation.fit_seed}, "
            f"noise seed {evaluation.noise_seed}",
            *(f"  {_metric_text(value)}" for value in (*evaluation.metrics(), *compared)),
        ]
    )


def _metric_text(value: MetricValue) -> str:
    if value.value is None:
        return f"{value.name}: undefined, {value.reason}"
    if value.ci_low is None:
        return f"{value.name}: {value.value:.4f}"
    return f"{value.name}: {value.value:.2f} [{value.ci_low:.2f}, {value.ci_high:.2f}] ({value.method}, n = {value.n})"


def _print_names(names: list[str]) -> None:
    for name in names:
        print(name)
