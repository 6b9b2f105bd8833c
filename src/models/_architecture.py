"""From the name of an architecture to an untrained network: timm, torchvision, or a function of the user's."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

from testbed.errors import DefinitionError, suggestion

if TYPE_CHECKING:
    from torch import nn

LIBRARIES = ("timm", "torchvision")
FORMS = (
    "timm:NAME, torchvision:NAME, a bare NAME (timm's first, then torchvision's), or MODULE:FUNCTION, FILE.py:FUNCTION"
)


def find_architecture(arch: str) -> Callable[..., nn.Module]:
    """The function that builds `arch`, found but not called.

    Args:
        arch: `timm:NAME`, `torchvision:NAME`, a bare NAME (timm's where both have it), `MODULE:FUNCTION` of an
            importable module or a plugin file, or `path/to/FILE.py:FUNCTION`.
    Raises: DefinitionError: nothing goes by that name, or the module cannot be imported.
    """
    home, _, name = arch.rpartition(":")
    if home and home not in LIBRARIES:
        return _function(home, name)
    known: list[str] = []
    for library in [home] if home else LIBRARIES:
        names, create = _library(library)
        if name.split(".")[0] in names:  # what follows a dot is timm's name of a set of weights
            return partial(create, name)
        known += names
    near = suggestion(name, known)
    raise DefinitionError(" ".join(filter(None, (f"Unknown architecture '{arch}'.", near, f"Give --arch as {FORMS}."))))


def build_architecture(arch: str, *, num_classes: int | None = None) -> nn.Module:
    """An untrained network.

    Args:
        arch: see `find_architecture`.
        num_classes: passed on where the function takes it; None leaves the function's own default.
    Raises: DefinitionError: unknown, or the function raises or returns something else than a torch module.
    """
    from torch import nn

    build = find_architecture(arch)
    options = {} if num_classes is None or not _takes(build, "num_classes") else {"num_classes": num_classes}
    try:
        network = build(**options)
    except Exception as error:
        raise DefinitionError(f"Architecture '{arch}' cannot be built: {type(error).__name__}: {error}.") from error
    if not isinstance(network, nn.Module):
        raise DefinitionError(f"Architecture '{arch}' gives a {type(network).__name__}. It must return a torch module.")
    return network


def _takes(function: Callable[..., Any], name: str) -> bool:
    parameters = inspect.signature(function).parameters
    return name in parameters or any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values())


def _library(library: str) -> tuple[list[str], Callable[..., nn.Module]]:
    """Names of the library's classifiers, and its function from a name to a network without trained weights."""
    if library == "timm":
        import timm

        return timm.list_models(), partial(timm.create_model, pretrained=False)
    from torchvision import models

    return models.list_models(module=models), partial(models.get_model, weights=None)


def _function(home: str, name: str) -> Callable[..., nn.Module]:
    module = _module(home)
    function = getattr(module, name, None)
    if not callable(function):
        near = suggestion(name, (known for known in vars(module) if not known.startswith("_")))
        raise DefinitionError(f"'{home}' has no function '{name}' for --arch {home}:{name}. {near}".rstrip())
    return cast("Callable[..., nn.Module]", function)


def _module(home: str) -> ModuleType:
    """The module named `home`: a file, a plugin already loaded from a file of that name, or an importable module."""
    try:
        return _module_of_file(Path(home)) if home.endswith(".py") else _plugin(home) or importlib.import_module(home)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise DefinitionError(
            f"'{home}', named by --arch, cannot be imported ({reason}). Give a file as path/to/FILE.py:FUNCTION, or "
            "put its folder on PYTHONPATH."
        ) from error


def _plugin(home: str) -> ModuleType | None:
    files = {
        name: getattr(module, "__file__", None) for name, module in sys.modules.items() if name.startswith("plugin_")
    }
    found = [name for name, file in files.items() if file and Path(file).stem == home]
    return sys.modules[found[0]] if found else None


def _module_of_file(path: Path) -> ModuleType:
    path = path.expanduser().resolve()
    spec = importlib.util.spec_from_file_location(f"architecture_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module.__name__] = module  # classes defined in the file look themselves up here
    spec.loader.exec_module(module)
    return module
