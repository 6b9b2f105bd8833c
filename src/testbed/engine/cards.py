"""Which physical cards the visible CUDA devices are: asked of nvidia-smi, so that CUDA stays untouched."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_QUERY = ("nvidia-smi", "--query-gpu=index,uuid,compute_cap,name", "--format=csv,noheader")
_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Card:
    """A visible CUDA device.

    Args:
        device: as PyTorch counts it, 'cuda:N' among the visible ones.
        name: of the product; empty where it is not known.
        physical: its number among all cards of the machine, or its UUID; empty where it is not known.
        capability: CUDA compute capability, (major, minor); None where it is not known.
    """

    device: str
    name: str = ""
    physical: str = ""
    capability: tuple[int, int] | None = None

    def __str__(self) -> str:
        facts = [self.name, f"physical {self.physical}" if self.physical else ""]
        told = ", ".join(filter(None, facts))
        return f"{self.device} ({told})" if told else self.device


def card(device: str) -> Card:
    """What is known of a CUDA device, 'cuda:N' among the visible ones."""
    number = int(device.partition(":")[2])
    return card_among(number, _installed(), os.environ.get("CUDA_VISIBLE_DEVICES"))


def described(device: str) -> str:
    """A device for a message: 'cpu', or 'cuda:N' with what is known of the card."""
    return str(card(device)) if device.startswith("cuda:") else device


def device_name(device: str) -> str:
    """What a device is, for what was measured on it: the product's name, or as much as is known."""
    if device == "cpu":
        return _processor()
    found = card(device)
    is_slice = found.physical.startswith("MIG-")  # slices of one card differ in size
    return " ".join(filter(None, [found.name, found.physical if is_slice or not found.name else ""])) or "CUDA device"


def card_among(number: int, installed: Sequence[Mapping[str, str]], visible: str | None) -> Card:
    """The card that is visible under a number.

    Args:
        number: of the device among the visible ones.
        installed: by index, uuid, compute_cap and name, the cards of the machine.
        visible: CUDA_VISIBLE_DEVICES: numbers, UUIDs or beginnings of them, or slices of cards (MIG); None for all.
    """
    device = f"cuda:{number}"
    tokens = None if visible is None else [token.strip() for token in visible.split(",")]
    token = str(number) if tokens is None else tokens[number] if number < len(tokens) else ""
    if token.startswith("MIG-"):
        return Card(device=device, name="a MIG slice", physical=token)
    for facts in installed:
        if token == facts["index"] or (token.startswith("GPU-") and facts["uuid"].startswith(token)):
            return Card(
                device=device,
                name=facts["name"],
                physical=f"{facts['index']}, {facts['uuid']}",
                capability=_capability(facts["compute_cap"]),
            )
    return Card(device=device, physical=token if tokens is not None else "")


def _capability(text: str) -> tuple[int, int] | None:
    major, dot, minor = text.partition(".")
    return (int(major), int(minor)) if dot and major.isdigit() and minor.isdigit() else None


@cache
def _processor() -> str:
    """The model of the CPU, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine() or "CPU"


@cache
def _installed() -> list[dict[str, str]]:
    """The cards of the machine as nvidia-smi lists them; none where there is no such program."""
    try:
        answer = subprocess.run(_QUERY, capture_output=True, text=True, timeout=_SECONDS, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return []
    rows = [[cell.strip() for cell in line.split(",", 3)] for line in answer.splitlines()]
    return [dict(zip(("index", "uuid", "compute_cap", "name"), row, strict=True)) for row in rows if len(row) == 4]
