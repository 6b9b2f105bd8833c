"""What stands behind `eval.py`: options to a request, the request to stored evaluations, those to printed results."""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from models._checkpoint import check_file
from models._local import LocalModelOptions
from registry import registry
from testbed.cli import EXIT_SOME_FAILED, interrupted_code, say
from testbed.commands.doctor import examine_all, suspicions
from testbed.commands.places import database_url, event_file, log_database_url, sqlite_file
from testbed.data.class_order import parse_class_order
from testbed.data.datasets import user_dataset
from testbed.definitions import Sources, load_definitions, plugin_paths
from testbed.engine.arithmetic import Arithmetic
from testbed.engine.devices import check_arithmetic, choose_devices
from testbed.engine.dry_run import plan_text
from testbed.engine.evaluate import collect, driver_name, run_evaluations
from testbed.engine.place import Place
from testbed.engine.plan import Request, make_plan
from testbed.engine.planned import Planned, plan_evaluations
from testbed.engine.preflight import check_disk_space
from testbed.errors import DataError
from testbed.eventlog import event_log, record
from testbed.export import export_log
from testbed.logit_policy import check_policy
from testbed.network_disk import network_disk
from testbed.paths import cache_root
from testbed.profile import Profile
from testbed.progress import PlanProgress
from testbed.report import report_text
from testbed.results import Result, results_object
from testbed.results.corruption_choice import IN_MEMORY
from testbed.results.records import BY_DESIGN
from testbed.results.users_metrics import metrics_fn_failure
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store

MANY = 4  # evaluations that failed for one reason, of which no more are named: one damaged file can fail hundreds


def evaluate_command(**options: Any) -> int:
    """Runs `eval.py` with its parsed options; returns the exit code."""
    devices = choose_devices(
        gpus=options["gpus"] or None, workers=options["workers"], workers_per_gpu=options["workers_per_gpu"]
    )
    arithmetic = Arithmetic(
        precision=options["precision"], channels_last=options["channels_last"], is_compiled=options["is_compiled"]
    )
    check_arithmetic(arithmetic, devices)
    sources = _sources(options)
    for failure in load_definitions(sources):
        say(f"Warning: {failure.path} was not imported: {failure.reason}")
    for notice in (*registry.notices(), devices.notice):
        if notice:
            say(f"Notice: {notice}")
    place = Place(
        devices=devices,
        threads=options["threads"],
        sources=sources,
        data_root=options["data_root"],
        cache_root=cache_root(),
        arithmetic=arithmetic,
        perturbs_on=options["perturb_on"],
        unit_timeout=options["unit_timeout"],
        uses_bank=options["bank"] == "on",
        bank_limit=None if options["bank_limit"] is None else int(options["bank_limit"] * 1e9),
    )
    request = Request(
        models=options["models"],
        eval_settings=options["eval_settings"],
        seeds=tuple(dict.fromkeys(options["seeds"])),
        draws=options["draws"],
        batch_size=options["batch_size"],
        limit=options["limit"],
        store_logits=_store_logits(options),
    )
    with _open_store(options) as store:
        if options["doctor"]:
            return _doctor(request, store, place, options)
        if options["dry_run"]:
            return _dry_run(request, store, place)
        make_plan(request)  # a name that is not there is told before anybody waits
        store.lock(driver_name(), on_wait=_tell_to_wait if options["wait"] else None)
        with event_log(event_file(store.url), warn=say):
            return _run(request, store, place, options)


def _run(request: Request, store: Store, place: Place, options: Mapping[str, Any]) -> int:
    profile = Profile.of_this_process(is_inline=place.devices.is_inline)
    profile.begin("preflight")
    planned = plan_evaluations(request, store, place, is_quiet=options["quiet"])
    _check_space(planned, store)
    place = replace(place, devices=place.devices.at_most(planned.num_units))
    done = planned.num_samples - planned.num_missing
    if done:
        say(f"{done} of {planned.num_samples} samples are stored already.")
    profile.took("decode", planned.filler.seconds)
    profile.begin("store")
    with PlanProgress(
        total=planned.num_samples,
        done=done,
        is_quiet=options["quiet"],
        devices=place.devices.names,
        decoding=planned.filler.counts,
        on_busy=profile.busy,
    ) as progress:
        run_evaluations(planned, store, place, progress=progress, profile=profile)
    profile.begin("results")
    results = collect(planned, store)
    for twins in same_weights(store, {result.evaluation.model for result in results}):
        say(f"Notice: {' and '.join(twins)} have the same weights: one network under several names.")
    for words in by_design(store, {result.evaluation.model for result in results}):
        say(f"Notice: {words}.")
    where = store.url if _is_shared(options) else str(options["logdir"])
    if not _is_shared(options):
        export_log(results, Path(where), where)
    if options["as_json"]:
        print(json.dumps(results_object(results, where), indent=1, allow_nan=False))
    else:
        print(report_text(results, planned.separations))
        say(f"Stored in {where}.")
        if any(result.evaluation.shift and result.evaluation.shift.family == IN_MEMORY for result in results):
            database = f"--db-url {where}" if _is_shared(options) else f"--logdir {where}"
            say(f"By corruption and severity: python db.py --corruption-report {database}")
    record("profile", seconds=profile.columns())
    if options["is_profiled"]:
        say(f"Where the time went:\n{profile.text()}")
    settings = [ready.setting for ready in planned.preparation.evaluations]
    for suspicious in suspicions([result.evaluation for result in results], settings):
        say(f"Warning: {suspicious}")
    return _report_failures(results)


def same_weights(store: Store, names: Collection[str]) -> list[list[str]]:
    """Those of the models `names` that are one network under several names, in groups.

    A network that is asked in another way, such as under randomized smoothing, is another model.
    """
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for model in store.list_models():
        if model.name in names and model.facts.weights_sha256 is not None:
            groups[model.facts.weights_sha256, json.dumps(model.spec.get("classify"))].append(model.name)
    return [group for group in groups.values() if len(set(group)) > 1]


def by_design(store: Store, names: Collection[str]) -> list[str]:
    """Which of the models `names` answer with more than the image by design, and in which way."""
    models = {model.name: model.spec for model in store.list_models() if model.name in names}
    return [f"{name} {words}" for name, spec in models.items() for key, words in BY_DESIGN.items() if key in spec]


def _tell_to_wait(refusal: str) -> None:
    say(f"Waiting: {refusal.split('. ')[0]}.")


def _doctor(request: Request, store: Store, place: Place, options: Mapping[str, Any]) -> int:
    try:
        return examine_all(request, store, place, as_json=options["as_json"], is_quiet=options["quiet"])
    except KeyboardInterrupt as error:
        say("Interrupted. What was found is above; the doctor stores nothing.")
        return interrupted_code(error)


def _dry_run(request: Request, store: Store, place: Place) -> int:
    planned = plan_evaluations(request, store, place, is_dry_run=True)
    _check_space(planned, store)
    print(plan_text(planned, place))
    return 0


def _check_space(planned: Planned, store: Store) -> None:
    if (file := sqlite_file(store.url)) is not None:
        check_disk_space(planned.num_missing_bytes, file.absolute().parent)


def _report_failures(results: Sequence[Result]) -> int:
    """Lists answers that are no numbers, and last, where they are seen, the evaluations that failed, by the reason."""
    evaluations = list({run.evaluation.id: run.evaluation for result in results for run in result.runs}.values())
    for evaluation in evaluations:
        _warn_of_nonfinite(evaluation)
    left = [evaluation for evaluation in evaluations if evaluation.status != "complete"]
    failed: dict[str, list[str]] = {}
    for evaluation in left:
        names = failed.setdefault(evaluation.reason or evaluation.status, [])
        names.append(f"{evaluation.model} on {evaluation.setting}")
    for reason, names in failed.items():
        more = f" and {len(names) - MANY} more" if len(names) > MANY else ""
        say(f"Failed: {', '.join(names[:MANY])}{more}: {reason}")
    without = [
        (evaluation, reason) for evaluation in evaluations if (reason := metrics_fn_failure(evaluation.metrics()))
    ]
    for evaluation, reason in without:
        say(
            f"Failed: metrics_fn of {evaluation.setting} for {evaluation.model}: {reason}. Its answers are stored: "
            "correct the function, and run python db.py --recompute."
        )
    return EXIT_SOME_FAILED if left or without else 0


def _warn_of_nonfinite(evaluation: Evaluation) -> None:
    top1 = next((value for value in evaluation.metrics() if value.name == "top1"), None)
    if top1 is not None and top1.detail.get("nonfinite"):
        total = evaluation.n * evaluation.num_draws
        say(
            f"Warning: {top1.detail['nonfinite']} of {total} answers of {evaluation.model} on {evaluation.setting} are "
            "not finite (NaN or infinite); they count as wrong."
        )


@contextmanager
def _open_store(options: Mapping[str, Any]) -> Iterator[Store]:
    """The shared database or that of the log directory. A dry run and the doctor leave both as they are."""
    url = database_url(options["db_url"]) if _is_shared(options) else log_database_url(options["logdir"])
    file = sqlite_file(url)
    if file is not None and (kind := network_disk(file)):
        say(
            f"Warning: {file} lies on a network disk ({kind}), where SQLite's locks cannot be relied on. Keep it on a "
            "local disk, or use a server: --db-url postgresql+psycopg://..."
        )
    if not (options["dry_run"] or options["doctor"]):
        with Store.open(url) as store:
            yield store
    elif file is None or file.exists():
        with Store.open(url, read_only=True, create=False) as store:
            yield store
    else:
        with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / file.name) as store:
            yield store


def _is_shared(options: Mapping[str, Any]) -> bool:
    """`--db`, or a database named on the command line; TESTBED_DB alone does not ask for it."""
    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("db_url") if context else None
    return bool(options["use_db"]) or source is click.core.ParameterSource.COMMANDLINE


def _store_logits(options: Mapping[str, Any]) -> str | None:
    policy = options["store_logits"]
    return None if policy is None else check_policy(policy, where="--store-logits")


def _sources(options: Mapping[str, Any]) -> Sources:
    return Sources(
        plugins=plugin_paths(options["plugins"]),
        datasets=tuple(_user_dataset(pair, options) for pair in options["datasets"]),
        local_models=LocalModelOptions(
            arch=options["arch"],
            num_classes=options["num_classes"],
            input_size=options["input_size"],
            mean=options["mean"] or None,
            std=options["std"] or None,
            label_space=options["label_space"],
            weights_key=options["weights_key"],
        ),
        weights_key=options["weights_key"],
        stochastic=options["stochastic"],
        weights=tuple(_user_weights(pair) for pair in options["weights"]),
    )


def _user_weights(pair: str) -> tuple[str, Path]:
    name, path = _name_and_path(pair, option="--weights", example="resnet50=net.safetensors")
    file = Path(path).expanduser().absolute()
    check_file(file)
    return name, file


def _name_and_path(pair: str, *, option: str, example: str) -> tuple[str, str]:
    name, equals, path = pair.partition("=")
    if not (name and equals and path):
        raise DataError(f"{option} {pair} is not of the form NAME=PATH, for example {option} {example}.")
    return name, path


def _user_dataset(pair: str, options: Mapping[str, Any]) -> Any:
    name, path = _name_and_path(pair, option="--dataset", example="birds=photos/birds")
    return user_dataset(
        name,
        path,
        canonical_size=options["canonical_size"],
        color_mode=options["color_mode"],
        class_order=parse_class_order(options["class_order"]),
        label_space=options["label_space"],
    )
