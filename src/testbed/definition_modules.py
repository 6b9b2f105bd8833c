"""Files of definitions as modules: what they are called, and who is said to have registered what is in them."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from registry import registry
from testbed.fingerprint import fingerprint


class DefinitionLoader(SourceFileLoader):
    """Attributes what a file registers to that file, also where another one imports it."""

    def exec_module(self, module: ModuleType) -> None:
        """Runs the file; what it registered is taken back if it fails half-way."""
        with registry.importing(Path(self.path)):
            super().exec_module(module)


class DefinitionFinder(MetaPathFinder):
    """Finds files of definitions by the names that were given to them."""

    def __init__(self) -> None:
        self.files: dict[str, Path] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The file of a module, if it is one of definitions."""
        if (file := self.files.get(fullname)) is None:
            return None
        return spec_from_file_location(fullname, file, loader=DefinitionLoader(fullname, str(file)))


_FINDER = DefinitionFinder()


def name_files(files: Mapping[str, Path]) -> None:
    """Makes files importable by these module names."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
    _FINDER.files.update(files)


def plugin_module_name(plugin: Path, file: Path, packages: Sequence[str], source_root: Path) -> str:
    """What the module of a plugin's file is called.

    A file in a folder called as one of our packages is a module of it, so that files there may import one another, as
    in the ImageNet Testbed: `models/nets.py` is `models.nets`. Any other has a name that no other file has.

    Args:
        plugin: the folder or file that was named.
        file: in it.
        packages: 'models' and 'eval_settings'.
        source_root: where our own packages are.
    """
    parts = file.relative_to(plugin.parent).with_suffix("").parts
    for depth in (0, 1):  # the folder itself is called so, or one in it
        inner = parts[depth:]
        is_ours = source_root.joinpath(*inner).with_suffix(".py").exists()
        if len(inner) > 1 and inner[0] in packages and not is_ours and _is_free(".".join(inner), file):
            path = importlib.import_module(inner[0]).__path__
            folder = str(plugin.parent.joinpath(*parts[: depth + 1]))
            if folder not in path:
                path.append(folder)
            return ".".join(inner)
    return f"plugin_{fingerprint(str(file))[:8]}_{file.stem}"


def _is_free(module_name: str, file: Path) -> bool:
    """Whether no other file has the name; from now on `file` has it."""
    return _FINDER.files.setdefault(module_name, file) == file
