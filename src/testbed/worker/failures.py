"""An exception of a model or a setting as a failure of its evaluation: one line, with a remedy where one is known.

Imports torch: only workers load this file.
"""

from __future__ import annotations

import traceback
from pathlib import Path

from testbed.engine.unit import UnitFailure
from testbed.errors import TestbedError
from testbed.worker.apply_arithmetic import is_compile_failure
from testbed.worker.memory import DEVICE_REMEDY, HOST_REMEDY, is_device_shortage, is_host_shortage
from testbed.worker.repetition import UnsteadyError


def failure(error: Exception) -> UnitFailure:
    """The failure that an exception, which is being handled, stands for."""
    is_unsteady = isinstance(error, UnsteadyError)
    return UnitFailure(reason=_reason(error), traceback=traceback.format_exc(), is_unsteady=is_unsteady)


def _reason(error: Exception) -> str:
    if isinstance(error, TestbedError):
        return str(error)
    last = traceback.extract_tb(error.__traceback__)[-1]
    words = " ".join(str(error).split())
    reason = f"{type(error).__name__}: {words} ({Path(last.filename).name}, line {last.lineno})"
    if is_device_shortage(error):
        return f"the device's memory does not suffice: {reason}. {DEVICE_REMEDY}"
    if is_host_shortage(error):
        return f"the machine's memory does not suffice: {reason}. {HOST_REMEDY}"
    if is_compile_failure(error):
        return f"torch.compile fails on this network: {reason}. Leave --compile out."
    return reason
