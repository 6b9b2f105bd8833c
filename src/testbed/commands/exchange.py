"""Actions of `db.py` that take results in from elsewhere and give them out: merge, import, export."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

from testbed.cli import EXIT_SOME_FAILED, say
from testbed.commands.action import Options, definitions, reading, writing
from testbed.errors import UnknownNameError
from testbed.store.evaluation import Evaluation
from testbed.store.merge_report import MergeReport
from testbed.store.store import Store


def merge(options: Options) -> int:
    """Takes over what another database holds; what differs is told, and stays as it is."""
    from testbed.results import store_metrics
    from testbed.store.merge import merge

    is_dry_run = options["dry_run"]
    registry = definitions(options)
    ours = reading(options) if is_dry_run else writing(options, "--merge", create=True)
    with Store.open(options["merge"], read_only=True, create=False) as theirs, ours as store:
        report = merge(store, theirs, is_dry_run=is_dry_run)
        for evaluation_id in report.to_complete:
            store_metrics(store, evaluation_id)
        _compare([store.evaluation_by_id(one) for one in report.to_complete], store, registry)
    print(_summary(report, is_dry_run=is_dry_run))
    for note in report.notes:
        say(f"Notice: {note}.")
    for conflict in report.conflicts:
        say(f"Conflict: {conflict}. It was kept as it is here.")
    return EXIT_SOME_FAILED if report.conflicts else 0


def import_logits(options: Options) -> None:
    """Stores logits that were computed elsewhere, with their metrics."""
    from testbed.provenance import provenance
    from testbed.results import store_metrics
    from testbed.store.import_logits import import_logits

    registry = definitions(options)
    models, count = set(), 0
    with writing(options, "--import-logits") as store:
        run_id = store.start_run(provenance(devices=[]))
        for evaluation_id in import_logits(store, Path(options["import_logits"]), run_id=run_id):
            store_metrics(store, evaluation_id)
            models.add(store.evaluation_by_id(evaluation_id).model)
            count += 1
        for model in models:
            _compare(store.list_evaluations(model=model, status="complete", is_stale=False), store, registry)
        store.finish_run(run_id, 0)
    say(f"Imported the logits of {count} evaluation(s) of {', '.join(sorted(models))}.")


def import_csv(options: Options) -> None:
    """Stores published numbers, and types of published models."""
    from testbed.data.model_types import is_list_of_types, read_types
    from testbed.data.published import read_published
    from testbed.store.published_models import put_types

    lists = [path for path in options["import_csv"] if is_list_of_types(path)]
    types = {path: read_types(path, source=options["source"]) for path in lists}
    tables = {
        path: read_published(
            path,
            source=options["source"],
            protocol=options["protocol"],
            eval_setting=options["eval_setting"],
            unit=options["unit"],
        )
        for path in options["import_csv"]
        if path not in types
    }
    with writing(options, "--import-csv", create=True) as store:
        for path, told in types.items():
            with store.writing() as connection:
                new = put_types(connection, told, override=options["override"])
            source = f" of the source '{told[0].source}'" if told else ""
            say(f"Read the types of {len(told)} models{source} from {path}: {new} new.")
        for path, results in tables.items():
            new = store.put_published(results, override=options["override"])
            empty = sum(result.value is None for result in results)
            flags = [result.flag for result in results if result.flag]
            flagged = f", {len(flags)} flagged: {', '.join(sorted(set(flags)))}" if flags else ""
            source = f" under the source '{results[0].source}'" if results else ""
            say(f"Read {len(results)} cells of {path}{source}: {new} new, {empty} empty{flagged}.")


def export(options: Options) -> None:
    """Writes all results as a table."""
    from testbed.report import former_words
    from testbed.results import table
    from testbed.results.stored import complete_evaluations
    from testbed.tables import wide, write_table

    with reading(options) as store:
        found = table(store, published=options["with_published"])
        former = former_words(complete_evaluations(store))
    if options["wide"]:
        found = wide(found)
    write_table(found, options["export"], override=options["override"])
    say(f"Wrote {len(found)} row(s) to {options['export']}.")
    for words in former:
        say(words)


def _compare(evaluations: Collection[Evaluation], store: Store, registry: Any) -> None:
    """Compares those that have not been with their clean parents, where these are stored."""
    for evaluation in evaluations:
        if evaluation.shift is not None and not evaluation.comparisons():
            _compare_one(evaluation, store, registry)


def _compare_one(evaluation: Evaluation, store: Store, registry: Any) -> None:
    from testbed.engine.plan import clean_parent
    from testbed.results import store_comparison
    from testbed.results.numerics import network_key

    try:
        model = registry.model(evaluation.model, evaluation.label_space)
        clean = clean_parent(registry.eval_setting(evaluation.setting), model)
    except UnknownNameError:  # a model from elsewhere, which resizes nothing here
        clean = evaluation.shift.clean_eval_setting if evaluation.shift else None
    found = store.list_evaluations(
        model=evaluation.model, label_space=evaluation.label_space, setting=clean or "", fit_seed=evaluation.fit_seed,
        status="complete", is_stale=False,
    )  # fmt: skip
    found = [one for one in found if network_key(one) == network_key(evaluation)]
    if len(found) == 1:
        store_comparison(store, evaluation, found[0])


def _summary(report: MergeReport, *, is_dry_run: bool) -> str:
    added = ", ".join(f"{number} {kind}" for kind, number in report.added.items()) or "nothing"
    completed = f", {len(report.to_complete)} evaluations completed" if report.to_complete else ""
    return f"{'Would add' if is_dry_run else 'Added'}: {added}{completed}. Held by both: {report.same} evaluations."
