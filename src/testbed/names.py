"""Names of all that can be evaluated, kept in a file so that a listing does not import every definition.

The file is a cache: it is used only while nothing that definitions are made of has changed, and listings alone look at
it. An evaluation imports its definitions, always.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from testbed.cache_files import read_cached, write_cached
from testbed.definitions import SOURCE_ROOT, Sources, load_definitions
from testbed.errors import DataError
from testbed.fingerprint import fingerprint
from testbed.paths import cache_folder, cache_root

FORMAT = 1
DEFINING_SUFFIXES = (".py", ".json", ".csv", ".toml", ".txt")  # code, and tables that code may read names from


@dataclass(frozen=True, kw_only=True)
class Names:
    """What can be named on the command line.

    Args:
        models: sorted, those of families such as `timm:NAME` last.
        eval_settings: sorted; those that are made for any noise level are not listed.
        failures: files of definitions that could not be imported, and why, a sentence each.
    """

    models: tuple[str, ...]
    eval_settings: tuple[str, ...]
    failures: tuple[str, ...] = ()


def registry_names(plugins: Sequence[Path]) -> Names:
    """The names of the built-in definitions and those of `plugins`: as kept, or by importing them where any changed."""
    state = _state(plugins)
    kept = _read(plugins)
    if kept is not None and kept[0] == state:
        return kept[1]
    names = _imported(plugins)
    with suppress(DataError, OSError):  # a cache that cannot be written costs time and nothing else
        cache_folder(cache_root(), "names")
        write_cached(_file(plugins), {"state": state, "names": asdict(names)})
    return names


def kept_names(plugins: Sequence[Path] = ()) -> Names | None:
    """The names that the last listing found, whatever has changed since; None where there was none."""
    kept = _read(plugins, is_quiet=True)  # a shell asks for it while its user types
    return None if kept is None else kept[1]


def _imported(plugins: Sequence[Path]) -> Names:
    from registry import registry
    from testbed.family_names import family_names

    failures = load_definitions(Sources(plugins=tuple(plugins)))
    return Names(
        models=(*registry.model_names(), *family_names(registry.model_families)),
        eval_settings=tuple(registry.eval_setting_names()),
        failures=tuple(f"{failure.path} was not imported: {failure.reason}" for failure in failures),
    )


def _state(plugins: Sequence[Path]) -> str:
    """Fingerprint of what the names depend on: Python, installed packages, and every file of definitions."""
    files = [entry for root in (SOURCE_ROOT, *plugins) for entry in _files(root)]
    return fingerprint([FORMAT, sys.version, sys.prefix, sorted(_packages()), sorted(files)])


def _packages() -> Iterator[str]:
    """Folders that name an installed package and its version; reading them is faster than asking for each package."""
    for place in sys.path:
        with suppress(OSError):
            yield from (item.name for item in Path(place).iterdir() if item.suffix in (".dist-info", ".egg-info"))


def _files(root: Path) -> Iterator[tuple[str, int, int, int]]:
    """Path, size and times of change of the files under `root`, or of the file `root`."""
    found = [root] if root.is_file() else [Path(at, name) for at, _, names in os.walk(root) for name in names]
    for path in found:
        if path.suffix in DEFINING_SUFFIXES or path == root:
            with suppress(FileNotFoundError):  # it has gone since it was listed
                status = path.stat()
                yield str(path), status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _file(plugins: Sequence[Path]) -> Path:
    """The cache of one set of sources."""
    sources = [str(path) for path in (SOURCE_ROOT, *plugins)]
    return cache_root() / "names" / f"{fingerprint(sources)[:16]}.json"


def _read(plugins: Sequence[Path], *, is_quiet: bool = False) -> tuple[str, Names] | None:
    """The kept state and names; None where there are none that can be believed."""
    content = read_cached(_file(plugins), is_quiet=is_quiet)
    if content is None:
        return None
    return content["state"], Names(**{name: tuple(values) for name, values in content["names"].items()})
