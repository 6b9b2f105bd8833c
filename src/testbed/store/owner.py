"""A process that is told from all others: its machine by name, boot and process numbers, itself by number and start."""

from __future__ import annotations

import os
import socket
import uuid
from functools import cache
from pathlib import Path

_UNKNOWN = "?"
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = Path("/proc/self/ns/pid")
_ENDED = "ZX"  # states of a process that only waits for its parent to take notice


def address(pid: int) -> str:
    """The machine that we are on, or container, and when a process of it started, as a word each."""
    return f"{_machine()} {_start(pid) or _UNKNOWN}"


def is_known_dead(address: str, pid: int) -> bool:
    """Whether the process that had this address is over; False where that cannot be known, as on another machine."""
    machine, _, start = address.rpartition(" ")
    if machine != _machine():
        return False
    found = _start(pid)
    return found is None or (_UNKNOWN not in (found, start) and found != start)


def is_known_alive(address: str, pid: int) -> bool:
    """Whether the process that had this address runs; False where that cannot be known."""
    return address.rpartition(" ")[0] == _machine() and not is_known_dead(address, pid)


def host_of(address: str) -> str:
    """The name of the machine."""
    return address.split(" ")[0]


@cache
def _machine() -> str:
    """Two programs with the same answer see the same process numbers; several machines may have one name."""
    try:
        boot = _BOOT.read_text().strip()
    except OSError:
        boot = f"{uuid.getnode():x}"  # elsewhere the address of a network card has to do
    namespace = str(_NAMESPACE.readlink()) if _NAMESPACE.is_symlink() else _UNKNOWN
    return f"{socket.gethostname()} {boot} {namespace}"


def _start(pid: int) -> str | None:
    """When a process of this machine started, since its boot; None where there is no such process."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        return None if state in _ENDED else fields[18]
    except (OSError, ValueError, IndexError):
        return _UNKNOWN if _is_running(pid) else None


def _is_running(pid: int) -> bool:
    if os.name != "posix":
        return True  # elsewhere signal 0 is not a question
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
