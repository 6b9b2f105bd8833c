"""The language of claims: `loss(press-mscr-linf) <= 1%`, one line of text to a value."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from testbed.errors import TestbedError, suggestion

Metric = Literal["top1", "loss", "recovery", "mscr"]
Operator = Literal["<=", ">=", "<", ">"]

METRICS: dict[str, Metric] = {
    "top1": "top1", "accuracy": "top1", "loss": "loss", "recovery": "recovery", "mscr": "mscr",
}  # fmt: skip
OPERATORS: dict[str, Operator] = {"<=": "<=", ">=": ">=", "<": "<", ">": ">", "≤": "<=", "≥": ">="}
FORM = "Write METRIC(SETTING) <= NUMBER%, for example loss(digits-mscr-linf) <= 1%."

_OPERATOR = re.compile(r"[<>=!≤≥]+")
_TERM = re.compile(r"\s*([^\s()]+)\s*\(\s*([^\s()]+)\s*\)\s*")
_NUMBER = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%?)\s*")


class ClaimError(TestbedError):
    """A claim that cannot be read or says nothing."""


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A number of a model, and what is claimed of it.

    Args:
        metric: of the model on `setting`; less the same on `subtracted`, where that is given.
        operator: '<=', '>=', '<' or '>'.
        threshold: as a fraction: 0.01 for 1 %, and for a difference of one percentage point.
    """

    metric: Metric
    setting: str
    operator: Operator
    threshold: float
    subtracted: str | None = None

    @property
    def settings(self) -> tuple[str, ...]:
        """The settings it is about."""
        return (self.setting,) if self.subtracted is None else (self.setting, self.subtracted)

    @property
    def quantity(self) -> str:
        """What it is about, as it would be written."""
        return " - ".join(f"{self.metric}({setting})" for setting in self.settings)

    def __str__(self) -> str:
        return f"{self.quantity} {self.operator} {100 * self.threshold:.12g}%"


def parse_claim(text: str) -> Claim:
    """The claim in a line such as `top1(a) >= 90%` or `loss(a) - loss(b) < 0.5%`; a difference is in points.

    All metrics are in percent. The sign may be left out where a number can be nothing else: 0, and beyond 1.

    Raises: ClaimError: it is no claim, and why.
    """
    signs = list(_OPERATOR.finditer(text))
    if len(signs) != 1 or signs[0].group() not in OPERATORS:
        raise ClaimError(_sign_fault(text, [sign.group() for sign in signs]))
    (metric, setting), subtracted = _quantity(text[: signs[0].start()], text)
    threshold = _threshold(text[signs[0].end() :], text)
    _check_range(metric, threshold, is_difference=subtracted is not None, text=text)
    return Claim(
        metric=metric,
        setting=setting,
        operator=OPERATORS[signs[0].group()],
        threshold=threshold,
        subtracted=subtracted,
    )


def _sign_fault(text: str, signs: list[str]) -> str:
    if not signs:
        return f"Claim '{text}' compares nothing. {FORM}"
    if len(signs) > 1:
        return f"Claim '{text}' has {len(signs)} comparisons, {' and '.join(signs)}. Ask for them one by one."
    if signs[0] in ("=", "==", "!="):
        return f"Claim '{text}' asks for '{signs[0]}', which no sample can show. Use <=, >=, < or >."
    return f"Claim '{text}' has '{signs[0]}' where <=, >=, < or > belongs."


def _quantity(text: str, claim: str) -> tuple[tuple[Metric, str], str | None]:
    """Metric and setting, and the setting that is subtracted."""
    first = _TERM.match(text)
    rest = text[first.end() :] if first else ""
    if first is None or (rest and not rest.startswith("-")):
        raise ClaimError(f"Claim '{claim}' does not begin with METRIC(SETTING): '{text.strip()}'. {FORM}")
    metric, setting = _metric(first.group(1), claim), first.group(2)
    if not rest:
        return (metric, setting), None
    second = _TERM.fullmatch(rest[1:])
    if second is None:
        raise ClaimError(f"Claim '{claim}' subtracts '{rest[1:].strip()}', which is not METRIC(SETTING).")
    other = _metric(second.group(1), claim)
    if other != metric or metric == "mscr":
        raise ClaimError(
            f"Claim '{claim}' subtracts {other} from {metric}. Differences are of one metric: top1, loss or recovery."
        )
    if second.group(2) == setting:
        raise ClaimError(f"Claim '{claim}' subtracts {metric}({setting}) from itself. Name two settings.")
    return (metric, setting), second.group(2)


def _metric(name: str, claim: str) -> Metric:
    if name in METRICS:
        return METRICS[name]
    hint = suggestion(name.lower(), METRICS)
    raise ClaimError(f"Claim '{claim}': unknown metric '{name}'. {hint} Metrics: {', '.join(METRICS)}.")


def _threshold(text: str, claim: str) -> float:
    """The number behind the comparison, as a fraction."""
    found = _NUMBER.fullmatch(text)
    value = float(found.group(1)) if found else math.nan
    if found is None or not math.isfinite(value):
        raise ClaimError(f"Claim '{claim}' compares with '{text.strip()}', which is no number such as 1% or -0.5%.")
    if not found.group(2) and 0 < abs(value) <= 1:
        raise ClaimError(
            f"Claim '{claim}': {value:g} may be a percentage or a fraction. Write {value:g}% or {100 * value:g}%."
        )
    return value / 100


def _check_range(metric: Metric, threshold: float, *, is_difference: bool, text: str) -> None:
    """Refuses a threshold that the metric is always on one side of."""
    lowest, highest = (-1.0, 1.0) if is_difference else (0.0, 1.0)
    if metric == "mscr":
        lowest, highest = -1.0, math.inf
    if not lowest <= threshold <= highest:
        name = f"a difference of {metric}" if is_difference else metric
        top = "" if highest == math.inf else f" and at most {100 * highest:g}%"
        raise ClaimError(f"Claim '{text}' says nothing: {name} is at least {100 * lowest:g}%{top}.")
