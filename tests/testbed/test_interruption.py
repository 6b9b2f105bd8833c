"""The first signal asks, the second ends."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from testbed.interruption import Interruption, Terminated

SIGNALS = [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Terminated)]


@pytest.mark.parametrize(("number", "error"), SIGNALS, ids=["Ctrl-C", "SIGTERM"])
def test_the_first_signal_is_remembered_and_says_what_happens(
    number: signal.Signals, error: type[KeyboardInterrupt], capfd: pytest.CaptureFixture[str]
) -> None:
    with Interruption() as interruption:
        assert not interruption.is_wanted
        interruption.raise_if_wanted()
        os.kill(os.getpid(), number)
        assert interruption.is_wanted
        with pytest.raises(error) as raised:
            interruption.raise_if_wanted()
    assert type(raised.value) is error
    assert "A second Ctrl-C or SIGTERM stops at once." in capfd.readouterr().err


@pytest.mark.parametrize(("number", "error"), SIGNALS, ids=["Ctrl-C", "SIGTERM"])
def test_the_second_signal_ends_at_once(number: signal.Signals, error: type[KeyboardInterrupt]) -> None:
    with Interruption():
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(error) as raised:
            os.kill(os.getpid(), number)
    assert type(raised.value) is error


def test_what_signals_meant_before_they_mean_again() -> None:
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    with Interruption():
        assert signal.getsignal(signal.SIGINT) != before[0]
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interruption() as interruption:
            os.kill(os.getpid(), signal.SIGINT)
            assert not interruption.is_wanted
    finally:
        signal.signal(signal.SIGINT, before)


def test_in_another_thread_nothing_is_changed() -> None:
    seen = []

    def enter() -> None:
        with Interruption():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
