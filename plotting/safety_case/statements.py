"""What a safety case may quote: bounds that err at most as often as was asked for, with n, level and witness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from plotting.safety_case.document import Section, Table
from plotting.safety_case.evidence import Evidence, shift_of

from testbed.claim_language import Claim, Metric, Operator
from testbed.metrics.claim_evidence import decide
from testbed.metrics.claims import Answer
from testbed.metrics.comparison import Outcomes
from testbed.metrics.corruption import Cell
from testbed.report import draws_words, former_words, noise_words, not_tested, separation_words
from testbed.results import Precision, by_fit
from testbed.results.corruption import StoredGrid
from testbed.results.corruption_choice import family_words
from testbed.results.data_facts import witness_of
from testbed.results.runs import guessing_when_clean, has_shared_draws, outcomes_of, unknown_answers
from testbed.results.stored import Group

# What is true of every model: it decides nothing, and has both bounds beside it.
_ALWAYS: dict[Metric, tuple[Operator, float]] = {"top1": (">=", 0.0), "loss": ("<=", 1.0)}
SHARED = "All images share the noise of a draw: the bound is about the draws at hand."


class _Said(NamedTuple):
    """A sentence, and what it says as rows of a table."""

    sentence: str
    rows: Sequence[Sequence[str]]


def bounds(metric: Metric, outcomes: Outcomes, alpha: float) -> Answer:
    """A number of a model with the bounds that `db.py --claim` decides by, each wrong with probability `alpha`."""
    operator, threshold = _ALWAYS[metric]
    return decide(Claim(metric=metric, setting="", operator=operator, threshold=threshold), [outcomes], alpha=alpha)


def bounds_of(metric: Metric, group: Group, confidence: float) -> Answer:
    """The same of a model's runs on a setting; undefined where it is not known which answers are right."""
    if reason := unknown_answers(group):
        return Answer(verdict="undecided", reason=reason)
    return bounds(metric, outcomes_of(by_fit(group), Precision(confidence=confidence)), 1 - confidence)


def statement(found: Evidence, grids: Sequence[StoredGrid], confidence: float) -> Section:
    """The section with a sentence on clean images, one for each norm at half the separation, one on corruptions.

    Also on the attack that costs most, where any is stored.
    """
    attacks = [group for group in found.shifted if (shift := shift_of(group)) and shift.is_attack]
    others = [group for group in found.shifted if group not in attacks]
    noise = found.at_separation or others[:1]
    if attacks:
        noise = [*noise, max(attacks, key=lambda group: bounds_of("loss", group, confidence).value or 0.0)]
    said = [_on_clean(found.model, group, confidence) for group in found.plain[:1]]
    said += [_under_noise(found, group, found.separation_of(group), confidence) for group in noise]
    said += [_under_corruptions(found.dataset, grid, confidence) for grid in grids]
    sentences = [one.sentence for one in said]
    if not noise and not grids:
        sentences.append("Nothing is stored about shifted images: nothing can be said about robustness.")
    header = ("share of images", "in the sample, %", "bound, %", "n")
    glance = Table(header=header, rows=[row for one in said for row in one.rows], caption="At a glance")
    return Section(title="Statement", leading=sentences, tables=[glance],
                   notes=[_note(confidence), *former_words(found.evaluations)])  # fmt: skip


def highest_losses(grid: StoredGrid, confidence: float) -> Mapping[Cell, Answer]:
    """By corruption and severity what is lost, with bounds that hold for all of them together (Bonferroni)."""
    alpha = (1 - confidence) / len(grid.grid.cells)
    return {cell: bounds("loss", grid.grid.outcomes([cell]), alpha) for cell in grid.grid.cells}


def percent(value: float | None, digits: int = 2) -> str:
    """A fraction in percent."""
    return "undefined" if value is None else f"{100 * value:.{digits}f}"


def cell_words(cell: Cell) -> str:
    """A corruption with its severity."""
    return cell[0] if cell[1] is None else f"{cell[0]} at severity {cell[1]}"


def _on_clean(model: str, group: Group, confidence: float) -> _Said:
    evaluation, answer = group[0].evaluation, bounds_of("top1", group, confidence)
    where = f"the images of {evaluation.dataset} ({evaluation.setting}, {evaluation.split})"
    row = _row("right when clean", "at least", answer.low, answer)
    if answer.value is None:
        return _Said(f"What {model} has right of {where} is undefined, because {answer.reason}.", [row])
    return _Said(
        f"{model} classifies at least {percent(answer.low)} % of {where} right; "
        f"{percent(answer.value)} % in the sample ({_sure(confidence, answer, group)}).",
        [row],
    )


def _under_noise(found: Evidence, group: Group, separation: Mapping[str, Any] | None, confidence: float) -> _Said:
    evaluation, shift = group[0].evaluation, shift_of(group)
    answer = bounds_of("loss", group, confidence)
    words = noise_words(shift) if shift and shift.epsilon is not None else f"the shift of {evaluation.setting}"
    source = f", half of {separation_words(separation)}," if separation else ""
    where = f"under {words}{source} on {evaluation.dataset} ({evaluation.setting})"
    row = _row(f"lost under {words}", "at most", answer.high, answer)
    if answer.value is None:
        return _Said(f"What {found.model} loses {where} is undefined, because {answer.reason}.", [row])
    if guesses := guessing_when_clean(group):
        return _Said(f"{found.model} {where}: {guesses}.", [_undecided(row)])
    parts = [
        f"{found.model} loses at most {percent(answer.high)} % of the images that it classifies right when clean "
        f"{where}; {percent(answer.value)} % in the sample ({_sure(confidence, answer, group)}).",
        *_witness(found, group, separation),
        *([SHARED] if has_shared_draws(group) else []),
        *([f"Not tested by it: {not_tested(shift)}, other data."] if shift else []),
    ]
    return _Said(" ".join(parts), [row])


def _witness(found: Evidence, group: Group, separation: Mapping[str, Any] | None) -> Iterator[str]:
    """Whether the loss is avoidable on the samples at hand, as the nearest-neighbour classifier shows."""
    shift = shift_of(group)
    if separation is None or shift is None or shift.norm is None:
        return
    seen = witness_of(found.store, group[0].evaluation.dataset, shift.norm, separation)
    if seen is None:
        yield "No witness is stored that the level is safe."
    elif seen["num_right"] == seen["num_points"]:
        yield (
            f"Witness: within this level the nearest-neighbour classifier over these samples is right for all "
            f"{seen['num_points']:,} noisy samples that were tried, so what is lost is avoidable on them in this norm."
        )
    else:
        wrong = seen["num_points"] - seen["num_right"]
        yield (
            f"The witness failed: the nearest-neighbour classifier is wrong for {wrong:,} of {seen['num_points']:,} "
            "noisy samples, so samples may be mislabelled and the loss need not be avoidable."
        )


def _under_corruptions(dataset: str, stored: StoredGrid, confidence: float) -> _Said:
    losses = highest_losses(stored, confidence)
    found = {cell: answer for cell, answer in losses.items() if answer.value is not None}
    where = f"the {len(losses)} stored combinations of a common corruption and its severity"
    where = "the one stored combination of a common corruption and its severity" if len(losses) == 1 else where
    shift = stored.evaluation.shift
    data = f"on {dataset}, {family_words(shift.family if shift else '')},"
    if not found:
        answer = next(iter(losses.values()))
        return _Said(
            f"What {stored.name} loses under {where} {data} is undefined, because {answer.reason}.",
            [_row("lost under common corruptions", "at most", None, answer)],
        )
    if stored.warning:
        row = _row("lost under common corruptions on average", "at most", None, next(iter(found.values())))
        return _Said(f"{stored.name} under {where} {data}: {stored.warning}.", [_undecided(row)])
    worst = max(found, key=lambda cell: found[cell].value or 0.0)
    highest = max(answer.high or 0.0 for answer in found.values())
    mean = bounds("loss", stored.grid.outcomes(stored.grid.cells), 1 - confidence)
    most = (
        f"under none of them more than {percent(highest)} %"
        if highest < 1
        else f"under the worst of them nothing below 100 % can be promised from {found[worst].n} {found[worst].unit}"
    )
    together = f" (all {len(found)} bounds together by Bonferroni)" if len(found) > 1 else ""
    return _Said(
        f"Over {where} {data} {stored.name} loses on average at most {percent(mean.high)} % of the images that it "
        f"classifies right when clean, {percent(mean.value)} % in the sample ({_sure(confidence, mean)}), and {most}"
        f"{together}: it loses most, {percent(found[worst].value)} %, under "
        f"{cell_words(worst)}. Not tested by it: other corruptions, attacks, other data.",
        [
            _row("lost under common corruptions on average", "at most", mean.high, mean),
            _row(f"lost under the worst of them, {cell_words(worst)}", "at most", highest, found[worst]),
        ],
    )


def _row(what: str, side: str, bound: float | None, answer: Answer) -> tuple[str, ...]:
    if answer.value is None:
        return (what, "undefined", "", "")
    return (what, percent(answer.value), f"{side} {percent(bound)}", f"{answer.n:,} {answer.unit}")


def _undecided(row: tuple[str, ...]) -> tuple[str, ...]:
    """The row without its bound."""
    return (row[0], row[1], "undecided", row[3])


def _sure(confidence: float, answer: Answer, group: Group | None = None) -> str:
    draws = f", {draws_words(group)}" if group is not None and group[0].evaluation.num_draws > 1 else ""
    return f"{100 * confidence:g} % confidence, n = {answer.n:,} {answer.unit}{draws}; one-sided, {answer.method}"


def _note(confidence: float) -> str:
    return (
        f"Each bound is wrong with probability {100 * (1 - confidence):.3g} % at most, by itself, for images drawn "
        "as these were; bounds are those that db.py --claim decides by. What no sample of these images can bound is "
        "listed under 'What was not tested'."
    )
