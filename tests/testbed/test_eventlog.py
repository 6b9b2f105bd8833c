"""The log of events: one JSON object per line, and nothing where no log is open."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from testbed import eventlog
from testbed.eventlog import event_log, record


def events(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_every_event_is_a_line_that_says_when_and_what(tmp_path: Path) -> None:
    with event_log(tmp_path / "log" / "a.jsonl", warn=print):
        record("unit", worker="cpu/0", seconds={"forward": 0.5})
        record("failed", traceback="first line\nsecond line", path=tmp_path)
    unit, failed = events(tmp_path / "log" / "a.jsonl")
    assert {"event": "unit", "worker": "cpu/0", "seconds": {"forward": 0.5}, "pid": os.getpid()}.items() <= unit.items()
    assert datetime.fromisoformat(str(unit["at"])).tzinfo is not None
    assert failed["traceback"] == "first line\nsecond line"
    assert failed["path"] == str(tmp_path)


def test_nothing_is_noted_outside_of_a_log_nor_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record("before")
    with event_log(tmp_path / "a.jsonl", warn=print):
        record("inside")
    record("after")
    assert [event["event"] for event in events(tmp_path / "a.jsonl")] == ["inside"]
    assert capsys.readouterr() == ("", "")


def test_a_second_run_adds_to_the_file(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with event_log(tmp_path / "a.jsonl", warn=print):
            record(name)
    assert [event["event"] for event in events(tmp_path / "a.jsonl")] == ["first", "second"]


def test_a_large_file_is_put_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eventlog, "MAX_BYTES", 20)
    for name in ("first", "second"):
        with event_log(tmp_path / "a.jsonl", warn=print):
            record(name)
    assert [event["event"] for event in events(tmp_path / "a.jsonl")] == ["second"]
    assert [event["event"] for event in events(tmp_path / "a.jsonl.1")] == ["first"]


def test_a_place_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    with event_log(tmp_path / "file" / "a.jsonl", warn=told.append):
        record("lost")
        told.append("went on")
    assert told[0].startswith(f"Warning: The log {tmp_path / 'file' / 'a.jsonl'} cannot be written (")
    assert told[1:] == ["went on"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is always full")
def test_a_full_disk_stops_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with event_log(Path("/dev/full"), warn=print):
        record("lost")
    assert capsys.readouterr().err == ""
