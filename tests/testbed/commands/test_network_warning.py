"""A database on a disk of another machine is used, and warned of."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed.commands import evaluate


@pytest.mark.parametrize(("kind", "is_warned"), [("nfs4", True), (None, False)])
def test_a_database_on_a_network_disk_is_warned_of(
    kind: str | None,
    is_warned: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(evaluate, "network_disk", lambda path: kind)
    options = {"db_url": None, "use_db": False, "logdir": tmp_path / "log", "dry_run": False, "doctor": False}
    with evaluate._open_store(options) as store:
        assert store.list_models() == []
    told = capsys.readouterr().err
    assert ("evaluations.sqlite lies on a network disk (nfs4)" in told) == is_warned
    assert ("--db-url postgresql+psycopg://" in told) == is_warned
