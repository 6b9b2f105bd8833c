"""One driver at a time: who waits, who is refused, and what a driver that was taken for dead may still do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from testbed.errors import BusyError
from testbed.store.store import Store

SOURCE = Path(__file__).parents[3] / "src"
SLEEPER = """
import sys
from testbed.errors import StoreError
from testbed.records import ModelVersion
from testbed.store.store import Store

def put(store, number):
    store.put_model(ModelVersion(name=f"first-{number}", label_space="x", fingerprint=f"{number:064}", spec={}))

with Store.open(sys.argv[1]) as store:
    store.lock("the first driver", expires_after=2)
    put(store, 0)
    print("locked", flush=True)
    sys.stdin.readline()
    for number in (1, 2):
        try:
            put(store, number)
        except StoreError as error:
            print(error, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="there is no SIGSTOP")
def test_a_driver_that_was_taken_for_dead_notices_and_stops_writing(store: Store, url: str) -> None:
    command = [sys.executable, "-c", SLEEPER, url]
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    first = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "locked\n"
        first.send_signal(signal.SIGSTOP)
        told: list[str] = []
        store.lock("the second driver", on_wait=told.append)
        assert len(told) == 1
        assert "in use by the first driver" in told[0]
        first.send_signal(signal.SIGCONT)
        out, _ = first.communicate("go on\n", timeout=30)
    finally:
        first.kill()
        first.communicate()
    assert out.count("is now in use by the second driver: this program was silent for too long") == 2
    assert [model.name for model in store.list_models()] == ["first-0"]


def test_a_driver_that_is_busy_elsewhere_keeps_its_lock(store: Store, url: str) -> None:
    """A batch of a large model can take longer than the lock lasts, and writes nothing meanwhile."""
    store.lock("busy", expires_after=1)
    time.sleep(2)
    with Store.open(url) as other, pytest.raises(BusyError, match="in use by busy"):
        other.lock("second")


def test_who_waits_is_told_once_and_goes_on_when_the_lock_is_free(store: Store, url: str, samples: Any) -> None:
    store.lock("first")
    told: list[str] = []
    with Store.open(url) as other:
        waiting = threading.Thread(target=other.lock, args=("second",), kwargs={"on_wait": told.append})
        waiting.start()
        time.sleep(1.2)
        assert waiting.is_alive()
        store.close()
        waiting.join(timeout=10)
        assert not waiting.is_alive()
        assert len(told) == 1
        other.put_model(samples.model())


def test_of_many_who_ask_at_once_one_gets_the_lock(url: str) -> None:
    stores = [Store.open(url) for _ in range(8)]
    outcomes: list[bool] = []

    def ask(store: Store) -> None:
        try:
            store.lock("one of many")
            outcomes.append(True)
        except BusyError:
            outcomes.append(False)

    threads = [threading.Thread(target=ask, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        store.close()
    assert sorted(outcomes) == [False] * 7 + [True]
