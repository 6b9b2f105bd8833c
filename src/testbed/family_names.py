"""Names of the models that families list, kept in files: a library is imported for them once per version of it."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path

from registry_base import ModelFamily
from testbed.cache_files import read_cached, write_cached
from testbed.errors import DataError
from testbed.fingerprint import file_sha256, fingerprint
from testbed.paths import cache_folder, cache_root
from testbed.users_code import asked

FORMAT = 1
FOLDER = "families"


def family_names(families: Mapping[str, ModelFamily]) -> list[str]:
    """Names of all models that families list, sorted.

    A family that names the `packages` its names come from is asked once for every version of these; others each time.
    """
    listed = {prefix: _kept_or_listed(prefix, family) for prefix, family in families.items()}
    return sorted(f"{prefix}:{rest}" for prefix, names in listed.items() for rest in names)


def _kept_or_listed(prefix: str, family: ModelFamily) -> Sequence[str]:
    packages: Sequence[str] = getattr(family, "packages", ())
    if not packages:
        return _listed(prefix, family)
    state = _state(family, packages)
    if (kept := _read(prefix, state)) is not None:
        return kept
    names = _listed(prefix, family)
    with suppress(DataError, OSError):  # a cache that cannot be written costs time and nothing else
        write_cached(cache_folder(cache_root(), FOLDER) / f"{prefix}.json", {"state": state, "names": names})
    return names


def _listed(prefix: str, family: ModelFamily) -> list[str]:
    return list(asked(family.names, what=f"The family of models '{prefix}'"))


def _state(family: ModelFamily, packages: Sequence[str]) -> str:
    """Fingerprint of what the names depend on: the libraries, and the file of the family."""
    versions = [metadata.version(package) for package in packages]
    return fingerprint([FORMAT, sys.version, versions, file_sha256(Path(inspect.getfile(type(family))))])


def _read(prefix: str, state: str) -> list[str] | None:
    """The kept names; None where there are none that can be believed."""
    content = read_cached(cache_root() / FOLDER / f"{prefix}.json")
    return content["names"] if content is not None and content["state"] == state else None
