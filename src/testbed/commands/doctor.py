"""What stands behind `eval.py --doctor`: each model on each clean setting examined, and told in words or as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from textwrap import fill
from typing import Any

from eval_settings.eval_setting_base import EvalSetting
from registry import registry
from testbed.cli import EXIT_SOME_FAILED, say
from testbed.cores import available_cores
from testbed.doctor.evidence import least_images
from testbed.doctor.examination import Examination, examine
from testbed.doctor.finding import Finding
from testbed.engine.data import Data
from testbed.engine.place import Place
from testbed.engine.plan import Request, make_plan
from testbed.errors import TestbedError
from testbed.report import WIDTH, interval_cell
from testbed.results.own import guessing, without_labels
from testbed.store.evaluation import Evaluation
from testbed.store.store import Store
from testbed.users_code import users_output

NUM_IMAGES = 300


def examine_all(request: Request, store: Store, place: Place, *, as_json: bool, is_quiet: bool) -> int:
    """Examines all models of a request on the clean images of its settings; returns the exit code.

    A model that cannot be examined keeps no other from it.

    Args:
        request: `limit` is the number of images.
        store: is read for separations, and not written.
    Raises: UnknownNameError: a name that is not registered.
    """
    make_plan(replace(request, limit=None))  # a name that is not there is told before anybody waits
    data = Data(
        store=store,
        data_root=place.data_root,
        cache_root=place.cache_root,
        threads=available_cores(),
        warn=say,
        is_kept=False,
        is_quiet=is_quiet,
        uses_bank=False,
    )
    num_images = request.limit or NUM_IMAGES
    found: dict[tuple[str, str], Examination] = {}
    failed: list[str] = []
    for model, setting in _pairs(request):
        if not is_quiet:
            say(f"Examining {model} on {setting}.")
        try:
            found[model, setting] = _examined(request, model, setting, num_images, data, place)
        except TestbedError as error:
            failed.append(f"Failed: {model} on {setting}: {error}")
            continue
        if not as_json:
            print(_text(model, setting, found[model, setting]), flush=True)
    if as_json:
        print(json.dumps([_record(*names, one) for names, one in found.items()], indent=1, allow_nan=False))
    for line in failed:
        say(line)
    return EXIT_SOME_FAILED if failed or any(one.findings for one in found.values()) else 0


def _pairs(request: Request) -> list[tuple[str, str]]:
    """Models and clean settings: noise and corruptions would hide what is wrong, or look like it."""
    names = registry.expand("eval-setting", request.eval_settings)
    clean = list(dict.fromkeys(clean_name(registry.eval_setting(name)) for name in names))
    if others := sorted(set(clean) - set(names)):
        say(f"Notice: clean images are examined in place of what is done to them: {', '.join(others)}.")
    return [(model, setting) for setting in clean for model in registry.expand("model", request.models)]


def clean_name(setting: EvalSetting) -> str:
    """The setting of the same images before anything is done to them, as models take them."""
    if setting.shift is not None:
        return setting.shift.clean_eval_setting
    is_twin = setting.space == "canonical" and setting.dataset.name in registry.datasets
    return str(setting.dataset.name) if is_twin else setting.name


def suspicions(evaluations: Iterable[Evaluation], settings: Iterable[EvalSetting]) -> Iterator[str]:
    """A sentence for each finished evaluation on clean images whose answers look like guesses.

    Args:
        settings: of the evaluations; left out are those that do anything to their images, or whose images were chosen
            because models fail on them.
    """
    clean = {setting.name for setting in settings if _is_clean(setting)}
    for evaluation in evaluations:
        if evaluation.setting not in clean or evaluation.status != "complete" or without_labels(evaluation):
            continue
        if (found := guessing(evaluation)) is not None:
            yield (
                f"{evaluation.model} on {evaluation.setting}: {found}. The same command with --doctor tells whether "
                "images reach it as it learnt them, and whether its outputs are read in its order."
            )


def _is_clean(setting: EvalSetting) -> bool:
    functions = (setting.perturbation_fn_cpu, setting.perturbation_fn_gpu, setting.adversarial_attack)
    dataset = registry.datasets.get(setting.dataset.name or "")
    is_chosen = dataset is not None and dataset.chosen_against is not None
    return setting.shift is None and functions == (None, None, None) and not is_chosen


@users_output()
def _examined(request: Request, model: str, setting: str, num_images: int, data: Data, place: Place) -> Examination:
    from testbed.doctor.waiting_room import seated

    asked = replace(request, models=(model,), eval_settings=(setting,), seeds=request.seeds[:1], limit=None)
    pairing = make_plan(asked)[-1]
    with seated(pairing, data, place, num_images=num_images) as sitting:
        return examine(sitting, is_quiet=data.is_quiet)


def _text(model: str, setting: str, found: Examination) -> str:
    """An examination in words."""
    images = f"{interval_cell(found.accuracy)} % right on {found.accuracy.n} images"
    if not found.findings:
        words = f"{model} on {setting}: nothing found. {images}; {_tried(found)}."
        return fill(words, WIDTH, subsequent_indent="  ")
    tried = f"{found.num_tries} changes were tried" if found.num_tries else "other changes were not tried"
    lines = [fill(f"{model} on {setting}: {len(found.findings)} found. {images}; {tried}.", WIDTH)]
    for number, finding in enumerate(found.findings, 1):
        lines.extend(
            fill(line, WIDTH, initial_indent="  ", subsequent_indent="     ") for line in _lines(number, finding)
        )
    return "\n".join(lines)


def _tried(found: Examination) -> str:
    """What was tried where nothing was found, and what it would have had to gain."""
    if found.num_tries:
        least = least_images(found.accuracy.n, num_tries=found.num_tries)
        return f"{found.num_tries} changes were tried, and one counts with at least {least} more images right"
    if found.num_needed:
        return (
            f"no change was tried: it would count with at least {found.num_needed} more images right, but fewer are "
            "wrong: give more images"
        )
    return "too few are wrong for a change to matter"


def _lines(number: int, finding: Finding) -> Iterator[str]:
    yield f"{number}. {finding.fault}: {finding.words}"
    yield f"   Fix: {finding.fix}"
    if finding.alternatives:
        yield f"   As good on these images: {'; '.join(finding.alternatives)}"
    if finding.before is not None and finding.after is not None:
        fix = "both fixes" if finding.is_joint else "the fix"
        chance = "" if finding.p_value is None else f", p = {finding.p_value:.1g} corrected for all that was tried"
        yield (
            f"   Accuracy {interval_cell(finding.before)} % as it is, {interval_cell(finding.after)} % with {fix}, "
            f"n = {finding.after.n}{chance}"
        )


def _record(model: str, setting: str, found: Examination) -> dict[str, Any]:
    accuracy = found.accuracy
    return {
        "model": model,
        "setting": setting,
        "n": accuracy.n,
        "accuracy": accuracy.value,
        "ci_low": accuracy.ci_low,
        "ci_high": accuracy.ci_high,
        "changes_tried": found.num_tries,
        "findings": [finding.record() for finding in found.findings],
    }
