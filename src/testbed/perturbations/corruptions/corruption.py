"""What a corruption is: a pure function of images, and one table row of its parameters at five severities."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from testbed.errors import DefinitionError
from testbed.signatures import argument_names, check_arguments, check_name

NUM_SEVERITIES = 5
Group = Literal["noise", "blur", "weather", "digital"]
Parameters = Mapping[str, Any]
Severities = tuple[Parameters, ...]

# The published sets of parameters, by the longest shorter side, in pixels, that each is taken for by itself.
# MNIST-C's is asked for by name: it is ImageNet's but for a few, and far too strong for what its images show.
TABLES: Mapping[str, float | None] = {
    "cifar32": 48,
    "tinyimagenet64": 128,
    "imagenet224": float("inf"),
    "mnist28": None,
}


def usual_table(height: int, width: int) -> str:
    """Name of the parameters that images of this size get: by their shorter side, in pixels."""
    return next(name for name, longest in TABLES.items() if longest is not None and min(height, width) <= longest)


def severities(names: str, *rows: Any) -> Severities:
    """The parameters at severity 1 to 5: `names` apart by spaces, each row a tuple of values, or one value.

    >>> severities("radius sigma", (6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5))[4]
    {'radius': 9, 'sigma': 2.5}
    """
    fields = names.split()
    tuples = [row if isinstance(row, tuple) else (row,) for row in rows]
    return tuple(dict(zip(fields, row, strict=True)) for row in tuples)


@dataclass(frozen=True, kw_only=True)
class Corruption:
    """A corruption by name.

    Args:
        name: what users type, e.g. 'fog'.
        group: 'noise', 'blur', 'weather' or 'digital'.
        function: `f(images, *, [keys,] **parameters)`: images (n, C, H, W) float32 in [0, 1], C = 1 or 3, any H and W
            from 8, to new ones of the same shape; it never writes into its input. `keys` are its only random numbers.
        parameters: by table name the arguments at severity 1 to 5 (see `severities`); empty for a corruption that has
            no severities.
        options: arguments whose default follows the published data where that has an accident, by name with what may
            be given instead; for documentation and checks.
        files: fingerprint of the files that the function reads, which are part of what the corruption is.
        version: bump it when the function changes what it computes; without one the file that registers it is the
            version.
        description: one line for listings.
    """

    name: str
    group: Group
    function: Callable[..., Any]
    parameters: Mapping[str, Severities] = field(default_factory=dict)
    options: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    files: Callable[[], str] | None = None
    version: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        check_name(self.name, what="Corruption")
        where = f"Corruption '{self.name}':"
        check_arguments(self.function, where=f"{where} function", required=("images",),
                        optional=("keys", *self.options, *self._parameter_names()))  # fmt: skip
        taken = argument_names(self.function)
        for table, rows in self.parameters.items():
            if len(rows) != NUM_SEVERITIES:
                raise DefinitionError(f"{where} table '{table}' has {len(rows)} severities. Give {NUM_SEVERITIES}.")
            if unknown := sorted({name for row in rows for name in row} - set(taken)):
                raise DefinitionError(
                    f"{where} table '{table}' has {', '.join(unknown)}, which its function does not take. Its "
                    f"arguments are {', '.join(taken)}."
                )

    @property
    def has_severities(self) -> bool:
        """Whether it comes at severities 1 to 5."""
        return bool(self.parameters)

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers."""
        return "keys" in argument_names(self.function)

    def at(self, severity: int | None, table: str) -> Parameters:
        """The arguments of the function at a severity, after a table.

        Raises: DefinitionError: no such severity, or the corruption has no parameters in that table.
        """
        if not self.has_severities:
            if severity is not None:
                raise DefinitionError(f"Corruption '{self.name}' has no severities, but {severity} was asked for.")
            return {}
        if not isinstance(severity, int) or isinstance(severity, bool) or not 1 <= severity <= NUM_SEVERITIES:
            raise DefinitionError(f"Corruption '{self.name}' has severity {severity!r}. Severities go from 1 to 5.")
        if table not in self.parameters:
            raise DefinitionError(
                f"Corruption '{self.name}' has no parameters '{table}'. It has {', '.join(self.parameters)}."
            )
        return self.parameters[table][severity - 1]

    def _parameter_names(self) -> set[str]:
        return {name for rows in self.parameters.values() for row in rows for name in row}
