"""The processors that there are to work on."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache

_MAX_THREADS = 16


def available_cores() -> int:
    """Processors that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def shared_threads() -> ThreadPoolExecutor:
    """Threads of this process for work that lets others run meanwhile, as decoding by Pillow or zlib does."""
    return ThreadPoolExecutor(min(_MAX_THREADS, available_cores()))
