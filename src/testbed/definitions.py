"""Finding and importing the files that define models, settings, data sets and metrics."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from registry import registry
from registry_base import Failure
from testbed.definition_modules import name_files, plugin_module_name
from testbed.errors import DataError, DefinitionError, reason_in
from testbed.users_code import users_output

if TYPE_CHECKING:
    from eval_settings.dataset_base import Dataset
    from models._local import LocalModelOptions

SOURCE_ROOT = Path(__file__).resolve().parent.parent
BUILT_IN_FOLDERS = ("eval_settings", "models")
PLUGINS_VARIABLE = "TESTBED_PLUGINS"


@dataclass(frozen=True, kw_only=True)
class Sources:
    """Where definitions come from beside the built-in folders: plain values, sent as they are to worker processes.

    Args:
        plugins: files, or folders that are searched for files, outside the tree.
        datasets: data sets named on the command line.
        local_models: how checkpoints named `local:PATH` are read.
        weights: for models by name, a file of parameters in place of their own.
        stochastic: models by name that are random by design.
        weights_key: which of several sets of weights in such a file.
    """

    plugins: tuple[Path, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    local_models: LocalModelOptions | None = None
    weights: tuple[tuple[str, Path], ...] = ()
    weights_key: str | None = None
    stochastic: tuple[str, ...] = ()


def plugin_paths(given: Sequence[str | Path]) -> tuple[Path, ...]:
    """The plugin paths of the command line and of TESTBED_PLUGINS, absolute.

    Raises: DataError: a path that does not exist.
    """
    variable = os.environ.get(PLUGINS_VARIABLE, "")
    paths = [Path(path).expanduser().resolve() for path in (*given, *filter(None, variable.split(os.pathsep)))]
    for path in paths:
        if not path.exists():
            raise DataError(f"Plugin path '{path}' does not exist. Check --plugin and {PLUGINS_VARIABLE}.")
    return tuple(dict.fromkeys(paths))


def load_definitions(sources: Sources | None = None) -> list[Failure]:
    """Imports every file of definitions, one by one; returns the files that failed, which harm nothing else."""
    sources = sources or Sources()
    _register_local_models(sources.local_models)
    files = {module_name: path for path, module_name in _definition_files(sources.plugins)}
    name_files(files)
    for module_name, path in files.items():
        if module_name not in sys.modules and all(failure.path != path for failure in registry.failures):
            _import_file(path, module_name)
    for dataset in sources.datasets:
        if registry.datasets.get(dataset.name, dataset) is not dataset:
            raise DefinitionError(f"--dataset {dataset.name}=...: that name is taken. Choose another name.")
        registry.add_dataset(dataset)
    for name, file in sources.weights:
        registry.set_weights(name, file, sources.weights_key)
    for name in sources.stochastic:
        registry.set_stochastic(name)
    return registry.failures


def _register_local_models(options: LocalModelOptions | None) -> None:
    from models._local import LocalModelOptions, LocalModels

    registry.add_model_family("local", LocalModels(options or LocalModelOptions()))


def _definition_files(plugins: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Files to import, each with the module name it goes by; settings before models, plugins last."""
    for folder in BUILT_IN_FOLDERS:
        for path in _python_files(SOURCE_ROOT / folder):
            yield path, ".".join(path.relative_to(SOURCE_ROOT).with_suffix("").parts)
    for plugin in plugins:
        for path in _python_files(plugin):
            yield path, plugin_module_name(plugin, path, BUILT_IN_FOLDERS, SOURCE_ROOT)


def _python_files(path: Path) -> list[Path]:
    """`path` itself if it is a file, else the files under it whose names do not mark them as something else."""
    if path.is_file():
        return [path]
    return sorted(
        file
        for file in path.rglob("*.py")
        if not any(part.startswith("_") for part in file.relative_to(path).parts) and not file.stem.endswith("_base")
    )


@users_output()
def _import_file(path: Path, module_name: str) -> None:
    try:
        importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a broken file must not take the others down
        registry.failures.append(Failure(path, reason_in(path, error)))
