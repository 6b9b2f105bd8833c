"""Lists of ImageNet's classes and labels that timm brings along, read as files: importing timm takes seconds."""

from __future__ import annotations

from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

_FILES = {  # timm's name of a set of classes -> the file of its wnids, in the order of the outputs
    "imagenet-1k": "imagenet_synsets.txt",
    "imagenet-12k": "imagenet12k_synsets.txt",
    "imagenet-21k-goog": "imagenet21k_goog_synsets.txt",
    "imagenet-21k-miil": "imagenet21k_miil_synsets.txt",
    "imagenet-22k": "imagenet22k_synsets.txt",
    "imagenet-22k-ms": "imagenet22k_ms_synsets.txt",
}


@lru_cache
def wnids(classes: str) -> tuple[str, ...]:
    """The wnids of `imagenet-1k`, or of a larger set by timm's name of it, in the order of a model's outputs."""
    return tuple(timm_file(_FILES[classes]).read_text(encoding="utf-8").split())


def timm_file(name: str) -> Path:
    """The file `name` among timm's facts about ImageNet."""
    package = find_spec("timm")  # looks for it without importing it
    folders = package.submodule_search_locations if package else None
    if not folders:
        raise ModuleNotFoundError("No module named 'timm'", name="timm")
    return Path(folders[0]) / "data" / "_info" / name
