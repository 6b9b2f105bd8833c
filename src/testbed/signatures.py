"""Checks of names and of the argument names of users' functions, made when a definition is built."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from testbed.errors import DefinitionError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@+/=_-]{0,199}")


def check_name(name: object, *, what: str) -> None:
    """Refuses names that could not be file names, shell words and table cells at once."""
    if not isinstance(name, str) or not _NAME.fullmatch(name) or ".." in name.split("/"):
        raise DefinitionError(
            f"{what} name {name!r} is not allowed. Start with a letter or digit, then up to 199 letters, digits or "
            "any of . _ : @ + / = - and no '..' between slashes."
        )


def argument_names(function: Callable[..., Any]) -> tuple[str, ...]:
    """Names of the arguments of `function`, in order; without `*args` and `**kwargs`."""
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return tuple(p.name for p in inspect.signature(function).parameters.values() if p.kind not in kinds)


def function_name(function: Callable[..., Any]) -> str:
    """What a function is called; of one whose arguments are filled in, that of the function itself."""
    function = function.func if isinstance(function, partial) else function
    return str(getattr(function, "__name__", type(function).__name__))


def check_arguments(
    function: Callable[..., Any] | None, *, where: str, required: Iterable[str], optional: Iterable[str] = ()
) -> None:
    """Raises a DefinitionError unless `function` takes all `required` and otherwise only `optional` arguments."""
    if function is None:
        return
    if not callable(function):
        raise DefinitionError(f"{where} must be a function, but is {function!r}.")
    required, allowed = tuple(required), (*required, *optional)
    parameters = inspect.signature(function).parameters
    missing = [name for name in required if name not in parameters]
    defaults = inspect.Parameter.empty
    unknown = [
        name for name in argument_names(function) if name not in allowed and parameters[name].default is defaults
    ]
    if missing or unknown:
        faults = [f"lacks {', '.join(missing)}"] * bool(missing) + [f"has unknown {', '.join(unknown)}"] * bool(unknown)
        raise DefinitionError(
            f"{where} has the signature {inspect.signature(function)}, which {' and '.join(faults)}. "
            f"Its arguments {_allowed(required, tuple(optional))}."
        )


def _allowed(required: tuple[str, ...], optional: tuple[str, ...]) -> str:
    """The rest of a sentence about the names of a function's arguments."""
    rules = (("must be named ", required), ("may be ", optional))
    return ", and ".join(rule + ", ".join(names) for rule, names in rules if names)
