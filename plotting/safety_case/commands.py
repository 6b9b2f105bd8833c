"""The part of a report with the command lines that make its evaluations and its numbers again."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from plotting.safety_case.document import Section
from plotting.safety_case.evidence import Evidence, shift_of

from testbed.metrics.corruption import NUM_SEVERITIES
from testbed.records import NORMS
from testbed.results.levels import SEPARATION_BASED
from testbed.results.stored import seed_of
from testbed.store.import_logits import IMPORTED

_SEVERITY = re.compile(r"(.+\.)[1-9](_.+)")


def commands_section(found: Evidence, confidence: float, claims: Sequence[str]) -> Section:
    """The commands, for a shell in the folder of the testbed."""
    lines = [*_evaluations(found), *_numbers(found, confidence, claims)]
    text = (
        "In the folder of the testbed, at the code revision above. The results go into the usual database and are "
        "read from there; --db-url names another one."
    )
    return Section(title="Commands", text=[text], commands=lines)


def _evaluations(found: Evidence) -> Iterator[str]:
    """A line for all settings that were evaluated alike."""
    if all(one.model_spec.get("definition") == IMPORTED for one in found.evaluations):
        yield _line("db.py", "--import-logits", "DIR")
        return
    alike: dict[tuple[tuple[int, ...], int], list[str]] = {}
    for group in found.groups:
        first = group[0].evaluation
        seeds = tuple(sorted({seed_of(run.evaluation) for run in group}))
        alike.setdefault((seeds, first.num_draws), []).append(first.setting)
    several = {len(seeds) for seeds, _ in alike}
    for (seeds, draws), settings in alike.items():
        runs = ["--seeds", *map(str, seeds)] if set(seeds) != {0} or len(several) > 1 else []
        how = [*runs, *(["--draws", str(draws)] if draws > 1 else [])]
        for limit, names in _by_limit(settings).items():
            part = ["--limit", limit] if limit else []
            yield _line("eval.py", "--db", "--models", found.model, "--eval-settings", *patterns_of(names), *how, *part)


def _by_limit(settings: Sequence[str]) -> dict[str, list[str]]:
    """Names of settings without their `@limitN`, by N."""
    found: dict[str, list[str]] = {}
    for name in settings:
        plain, _, limit = name.partition("@limit")
        found.setdefault(limit, []).append(plain)
    return found


def patterns_of(names: Sequence[str]) -> list[str]:
    """The names, with a pattern in the place of those that differ in their severity alone, if all are there."""
    patterns = {name: f"{match[1]}*{match[2]}" for name in names if (match := _SEVERITY.fullmatch(name))}
    whole = {one for one in patterns.values() if list(patterns.values()).count(one) == NUM_SEVERITIES}
    return list(dict.fromkeys(one if (one := patterns.get(name)) in whole and one else name for name in names))


def _numbers(found: Evidence, confidence: float, claims: Sequence[str]) -> Iterator[str]:
    who = ["--models", found.model]
    sure = [] if confidence == 0.95 else ["--confidence", f"{confidence:g}"]
    data = ["--dataset", found.dataset]
    yield from (_line("db.py", "--mscr", *level, *who, *data, *sure) for level in _levels(found))
    if found.corrupted:
        yield _line("db.py", "--corruption-report", "--well-posed", *who, *data, *sure)
    yield from (_line("db.py", "--claim", claim, *who, *sure) for claim in claims)
    asked = [part for claim in claims for part in ("--claim", claim)]
    yield _line("plotting/report.py", "--model", found.model, *data, *sure, *asked)


def _levels(found: Evidence) -> list[list[str]]:
    """What `--mscr` is to be asked for: half the separation, then each other level of uniform noise."""
    asked: list[list[str]] = []
    for shift in filter(None, map(shift_of, found.shifted)):
        if shift.name in SEPARATION_BASED:
            asked.append([])
        elif shift.norm in NORMS and shift.epsilon and not shift.is_attack and shift.family.startswith("uniform-"):
            asked.append(["--epsilon", f"{shift.epsilon:g}"])
    return [level for place, level in enumerate(asked) if level not in asked[:place]]


def _line(*parts: str) -> str:
    return shlex.join(["python", *parts])
