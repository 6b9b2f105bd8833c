"""Noise levels in names: one spelling per level, so that equal things have equal names."""

from __future__ import annotations

from testbed.errors import DefinitionError


def noise_level(text: str, *, where: str) -> float:
    """The level that `text` spells, a positive number.

    Args:
        text: the part of a name, as in `digits-noise-linf-0.1`.
        where: whose name it is, for the error, e.g. "EvalSetting 'digits-noise-linf-0.1'".
    Raises: DefinitionError: no positive number, or another spelling of one.
    """
    try:
        level = float(text)
    except ValueError:
        raise DefinitionError(f"{where} ends in '{text}', which is no noise level: give a number.") from None
    if not 0 < level < float("inf"):
        raise DefinitionError(f"{where} has the noise level {text}. It must be a positive number.")
    if f"{level:g}" != text:
        raise DefinitionError(f"{where} has the noise level {text}. Write it as {level:g}.")
    return level
