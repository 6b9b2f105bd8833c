"""Loops over pixels, compiled for the CPU on their first call."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

Loop = Callable[..., Any]


def compiled(*calls: Loop) -> Callable[[Loop], Loop]:
    """A decorator: the function is compiled by numba on its first call and kept on disk for later processes.

    Call it with arrays of the same types always: two compilations in one file of the cache could be mixed up in a race.

    Args:
        calls: plain functions of the same file that the function calls; they are compiled into it.
    """

    def decorate(loop: Loop) -> Loop:
        @cache
        def build() -> Loop:
            import numba  # slow to import

            for inner in calls:
                numba.extending.register_jitable(inner)
            try:
                machine_code: Loop = numba.njit(cache=True, nogil=True)(loop)
            except RuntimeError:  # neither the source folder nor the user's cache folder can be written
                machine_code = numba.njit(nogil=True)(loop)
            return machine_code

        @wraps(loop)
        def run(*arguments: Any) -> Any:
            return build()(*arguments)

        return run

    return decorate
