"""Where results come from: versions, machine, code and command line of a run."""

from __future__ import annotations

import getpass
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from testbed.masking import masked

PACKAGES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "numba", "pillow", "sqlalchemy")
_CHANGED = "+"  # behind the commit of a checkout in which files were changed


def provenance(*, devices: Sequence[str]) -> dict[str, Any]:
    """What is stored with every run; nothing in it is part of an evaluation's identity."""
    return {
        "host": platform.node(),
        "pid": os.getpid(),
        "user": _user(),
        "argv": [masked(argument) for argument in sys.argv],
        "code_revision": _code_revision(),
        "versions": {"python": platform.python_version(), **_versions()},
        "devices": list(devices),
    }


def _versions() -> dict[str, str]:
    found = {}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may have no name for its user
        return str(os.getuid())


def _code_revision() -> str | None:
    """The commit the code is at, with `+` behind it where files were changed; None outside a git checkout."""
    root = Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root), "describe", "--always", f"--dirty={_CHANGED}", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None


def revision_words(revision: str) -> str:
    """A code revision, as a run keeps it, for people: the `+` of changed files is put into words."""
    commit = revision.removesuffix(_CHANGED)
    return revision if commit == revision else f"{commit}, with uncommitted changes"
