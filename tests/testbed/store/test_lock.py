"""One driver at a time: who waits, who is refused, and what a driver that was taken for dead may still do."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import getnode

import pytest
from sqlalchemy import delete, insert

from testbed.errors import BusyError
from testbed.store import owner
from testbed.store.lock import holder, release_lock
from testbed.store.schema import locks
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


# Whose lock it is, and whether its owner lives


@contextmanager
def held(store: Store, **changes: Any) -> Iterator[None]:
    """A lock of somebody who gives no sign of life, with some of its columns changed; gone at the end."""
    taken: dict[str, Any] = {"name": "driver", "owner": "somebody", "token": "t", "expires_after": 120.0}
    taken |= {"host": owner.address(os.getpid()), "pid": os.getpid(), "heartbeat_at": datetime.now(UTC)}
    with store.writing() as connection:
        connection.execute(insert(locks).values(taken | changes))
    yield
    with store.writing() as connection:
        connection.execute(delete(locks).where(locks.c.token == "t"))


def is_free(store: Store) -> bool:
    with store.reading() as connection:
        return holder(connection) is None


def ended() -> int:
    """The number of a process that is over."""
    return int(subprocess.run(["sh", "-c", "echo $$"], capture_output=True, check=True).stdout)


def with_word(position: int, word: str) -> str:
    """The address of this process with one of its words changed: machine, boot, namespace, start."""
    words = owner.address(os.getpid()).split(" ")
    words[position] = word
    return " ".join(words)


@pytest.mark.parametrize(
    ("change", "free"),
    [
        ({}, False),
        ({"pid": ended}, True),
        ({"host": lambda: with_word(3, "12345")}, True),  # the number was given to another process
        ({"host": lambda: with_word(1, "another-boot"), "pid": ended}, False),  # another machine of this name
        ({"host": lambda: with_word(0, "elsewhere"), "pid": ended}, False),
        ({"host": lambda: with_word(2, "pid:[1]"), "pid": ended}, False),  # another container
        ({"host": lambda: "elsewhere pid:[1]", "pid": ended}, False),  # as an earlier version writes it
    ],
)
def test_a_lock_is_free_at_once_where_its_owner_is_known_dead(store: Store, change: dict[str, Any], free: bool) -> None:
    with held(store, **{name: value() for name, value in change.items()}):
        assert is_free(store) == free


@pytest.mark.parametrize(("seconds", "free"), [(-121, True), (-60, False), (0, False), (60, False), (121, True)])
def test_a_sign_of_life_from_the_past_or_the_future_is_none(store: Store, url: str, seconds: int, free: bool) -> None:
    """A clock was set back, or is that of another machine."""
    with held(store, host="elsewhere x y 1", heartbeat_at=datetime.now(UTC) + timedelta(seconds=seconds)):
        assert is_free(store) == free
        with (
            nullcontext() if free else pytest.raises(BusyError, match=r"db\.py --release-lock"),
            Store.open(url) as other,
        ):
            other.lock("us")


def test_a_process_that_waits_for_its_parent_is_over() -> None:
    program = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    place = owner.address(program.pid)
    assert not owner.is_known_dead(place, program.pid)
    program.communicate(b"\n")
    assert owner.is_known_dead(place, program.pid)
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        place = owner.address(child.pid)
        deadline = time.monotonic() + 30
        while not owner.is_known_dead(place, child.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert child.returncode is None, "nobody has waited for it"
        assert owner.is_known_dead(place, child.pid)


def test_where_nothing_tells_the_boot_a_network_card_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(owner, "_BOOT", tmp_path / "none")
    owner._machine.cache_clear()
    place = owner.address(os.getpid())
    owner._machine.cache_clear()
    assert f"{getnode():x}" in place.split(" ")


def test_an_action_releases_the_lock_of_the_dead_alone(store: Store) -> None:
    release = partial(release_lock, store.database)
    assert release(is_told_dead=False) is None
    with held(store):
        for is_told in (False, True):
            with pytest.raises(BusyError, match=f"kill {os.getpid()}"):
                release(is_told_dead=is_told)
    with held(store, pid=ended()):
        assert release(is_told_dead=False) == "somebody"
    with held(store, host="elsewhere boot pid:[1] 1"):
        with pytest.raises(BusyError, match=r"another machine, elsewhere.*--override"):
            release(is_told_dead=False)
        assert release(is_told_dead=True) == "somebody"
        assert is_free(store)
