"""A report as one HTML page that needs nothing beside it: no script, no network, no font."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plotting.safety_case.case import SafetyCase

from testbed.errors import TestbedError
from testbed.visible import visible

TEMPLATE = "report.html"
LONGEST = 60  # letters of a name in the headline; all are below it


def page(case: SafetyCase) -> str:
    """The page; whatever stands in names is text there.

    Raises: TestbedError: jinja2 is not installed.
    """
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise TestbedError("Reports need jinja2: pip install jinja2") from error
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, finalize=_shown, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["short"] = _short
    return environment.get_template(TEMPLATE).render(case=case)


def _short(name: str) -> str:
    """A name for a headline, with an ellipsis in the middle of a long one."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}…{name[-(LONGEST // 2) :]}"


def _shown(value: Any) -> Any:
    """Texts without what would steer a terminal or turn the direction of the text around them."""
    return visible(value) if type(value) is str else value
