"""One driver per database: a lock with a heartbeat by the database's own clock, which expires when its owner dies."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import uuid4

from sqlalchemy import Connection, Row, delete, func, select, update

from testbed.errors import BusyError, StoreError
from testbed.store.columns import UtcDateTime
from testbed.store.database import Database, insert_new
from testbed.store.owner import address, host_of, is_known_alive, is_known_dead
from testbed.store.schema import locks

BEATS = 8  # signs of life within the time after which silence means death
SHORTEST_PAUSE = 0.1  # seconds between two signs of life
WAIT_SECONDS = 0.5  # between two looks at a lock that is waited for
_NAME = "driver"
_NOW = select(func.now(type_=UtcDateTime))  # no two machines agree on the time, but all can ask the database


class DriverLock:
    """The right to write evaluations, held by one driver at a time."""

    def __init__(self, database: Database, *, owner: str, expires_after: float) -> None:
        """Takes the lock.

        Args:
            database: where the lock lies.
            owner: who holds it, in words for the one who is refused.
            expires_after: seconds without a heartbeat after which another driver may take it.
        Raises: BusyError: another driver holds it.
        """
        self._database = database
        self._pause = expires_after / BEATS
        self._last_beat = time.monotonic()
        self._token = uuid4().hex
        row: dict[str, Any] = {"name": _NAME, "owner": owner, "token": self._token, "expires_after": expires_after}
        row |= {"host": address(os.getpid()), "pid": os.getpid()}
        with database.writing() as connection:
            held = _held(connection)
            if held is None or _is_expired(connection, held):
                if held is not None:  # this very row: another driver may have replaced it since it was read
                    connection.execute(delete(locks).where(locks.c.token == held.token))
                insert_new(connection, locks, [{**row, "heartbeat_at": connection.scalar(_NOW)}])
                held = _held(connection)
            if held is None or held.token != self._token:
                raise BusyError(_refusal(database.url, held))
        self._is_released = threading.Event()
        self._thread = threading.Thread(target=self._keep_alive, name="heartbeat", daemon=True)
        self._thread.start()

    @property
    def is_due(self) -> bool:
        """Whether the last sign of life is so long ago that another should follow."""
        return time.monotonic() - self._last_beat >= self._pause

    def beat(self, connection: Connection) -> None:
        """Says that the owner is alive, in the transaction of `connection`.

        Raises: StoreError: the lock expired and another driver took it.
        """
        ours = (locks.c.name == _NAME) & (locks.c.token == self._token)
        if connection.execute(update(locks).where(ours).values(heartbeat_at=func.now())).rowcount == 1:
            self._last_beat = time.monotonic()
            return
        held = _held(connection)
        now = f"is now in use by {held.owner}" if held is not None else "was given to another, which has finished"
        raise StoreError(
            f"The database {self._database.url} {now}: this program was silent for too long. "
            "Nothing more was written; run the same command again."
        )

    def _keep_alive(self) -> None:
        """Beats while the owner is silent: one batch of a large model can take longer than the lock lasts."""
        while not self._is_released.wait(max(self._pause, SHORTEST_PAUSE)):
            if self.is_due:
                with suppress(StoreError):  # the owner's next write tells what is wrong
                    with self._database.writing() as connection:
                        self.beat(connection)

    def release(self) -> None:
        """Gives the lock back, if it is still held."""
        self._is_released.set()
        self._thread.join()
        with self._database.writing() as connection:
            connection.execute(delete(locks).where(locks.c.token == self._token))


def take_lock(
    database: Database, *, owner: str, expires_after: float, on_wait: Callable[[str], None] | None
) -> DriverLock:
    """The lock, now or, where `on_wait` is given and told once who holds it, when it is free.

    Raises: BusyError: another driver holds it, and nobody waits.
    """
    is_told = False
    while True:
        try:
            return DriverLock(database, owner=owner, expires_after=expires_after)
        except BusyError as error:
            if on_wait is None:
                raise
            if not is_told:
                on_wait(str(error))
            is_told = True
        time.sleep(WAIT_SECONDS)


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds the lock: in words, and its process on its machine."""

    owner: str
    host: str
    pid: int


def holder(connection: Connection) -> Holder | None:
    """Who holds the lock; None where it is free, or expired."""
    held = _held(connection)
    if held is None or _is_expired(connection, held):
        return None
    return Holder(owner=held.owner, host=host_of(held.host), pid=held.pid)


def release_lock(database: Database, *, is_told_dead: bool) -> str | None:
    """Who held the lock that was released; None where none was held.

    Args: is_told_dead: the user knows that an owner on another machine no longer runs.
    Raises: BusyError: the owner runs, or may run.
    """
    with database.writing() as connection:
        held = _held(connection)
        if held is None:
            return None
        if not _is_expired(connection, held) and not (is_told_dead and not is_known_alive(held.host, held.pid)):
            raise BusyError(_release_refusal(database.url, held))
        connection.execute(delete(locks).where(locks.c.token == held.token))
        return str(held.owner)


def _release_refusal(url: str, held: Row[Any]) -> str:
    if is_known_alive(held.host, held.pid):
        return f"The database {url} is in use by {held.owner}, which runs. End that first: kill {held.pid}."
    return (
        f"The database {url} is in use by {held.owner} on another machine, {host_of(held.host)}, which gave a sign of "
        "life. If you know that it no longer runs, add --override."
    )


def _held(connection: Connection) -> Row[Any] | None:
    return connection.execute(select(locks).where(locks.c.name == _NAME)).one_or_none()


def _is_expired(connection: Connection, held: Row[Any]) -> bool:
    if is_known_dead(held.host, held.pid):
        return True  # a killed program can be resumed at once
    silence = connection.execute(_NOW).scalar_one() - held.heartbeat_at
    return bool(abs(silence) > timedelta(seconds=held.expires_after))  # a clock that was set back is no sign of life


def _refusal(url: str, held: Row[Any] | None) -> str:
    owner, seconds = ("another program", 0) if held is None else (held.owner, held.expires_after)
    return (
        f"The database {url} is in use by {owner}. Give eval.py --wait, or wait until that is finished or, if it no "
        f"longer runs, for {seconds:.0f} seconds or until db.py --release-lock, and run the same command again."
    )
