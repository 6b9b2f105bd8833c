"""Pages out of templates, and what the templates need: links that know their folder, and text that stays text."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from testbed.errors import TestbedError
from testbed.visible import visible

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).resolve().parent


@cache
def _environment() -> Environment:
    try:
        from jinja2 import Environment, FileSystemLoader, StrictUndefined
    except ImportError as error:
        raise TestbedError("The site needs jinja2: pip install jinja2") from error
    return Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_shown,
    )


def _shown(value: Any) -> Any:
    """Texts without what would steer a terminal or turn the direction of the text around them."""
    return visible(value, in_one_line=False) if type(value) is str else value  # what is marked as safe is another type


def render(template: str, *, path: str, **context: Any) -> bytes:
    """A page.

    Args:
        template: its file in `templates`.
        path: of the page within the site, which links out of it depend on.
    """
    root = "../" * path.count("/")
    page = path.rpartition("/")[2].removesuffix(".html") if not root else path.partition("/")[0]
    return _environment().get_template(template).render(root=root, page=page, **context).encode()
