"""Whether the kernel kills programs for lack of memory, as far as it lets us see."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

REMEDY = "Give eval.py fewer --workers or a smaller --batch-size"


class OomKiller:
    """Compares the kernel's counts of such kills with what they were when this was made.

    Args:
        root: of the file system, for tests.
    """

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._ours, self._machine = self._counts()

    def explain(self) -> str:
        """Who ended a worker by SIGKILL, and what to do about it, as the end of a sentence."""
        ours_before, machine_before = self._ours, self._machine
        self._ours, self._machine = self._counts()
        if _has_risen(ours_before, self._ours):
            return f", by the kernel for lack of memory. {REMEDY}"
        if _has_risen(machine_before, self._machine) or (self._ours is None and self._machine is None):
            return f", probably out of memory. {REMEDY}"
        return ", and not by the kernel: probably by a limit on memory from outside, a batch system or a person"

    def _counts(self) -> tuple[int | None, int | None]:
        """Kills in the control group of this process, and on the whole machine; None where that cannot be read."""
        files = (_count(file) for file in self._group_files())
        return next((n for n in files if n is not None), None), _count(self._root / "proc/vmstat")

    def _group_files(self) -> list[Path]:
        """Where the kernel counts for the control group that this process and its workers are in."""
        groups = self._root / "sys/fs/cgroup"
        found = [groups / "memory.events", groups / "memory/memory.oom_control"]  # a container can see its own as root
        with suppress(OSError):
            for line in (self._root / "proc/self/cgroup").read_text().splitlines():
                _, controllers, group = line.split(":", 2)
                if not controllers:
                    found.insert(0, groups / group.lstrip("/") / "memory.events")
                elif "memory" in controllers.split(","):
                    found.insert(0, groups / "memory" / group.lstrip("/") / "memory.oom_control")
        return found


def _count(file: Path) -> int | None:
    """The number after the word oom_kill; None where the file has none."""
    with suppress(OSError):
        for line in file.read_text().splitlines():
            word, _, number = line.partition(" ")
            if word == "oom_kill":
                return int(number)
    return None


def _has_risen(before: int | None, after: int | None) -> bool:
    return before is not None and after is not None and after > before
