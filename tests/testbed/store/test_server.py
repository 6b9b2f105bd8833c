"""What is said where PostgreSQL or its driver is missing, and that its password stays out of messages."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from testbed.errors import StoreError
from testbed.store.store import Store


def test_a_missing_driver_is_one_line_with_the_command_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(StoreError, match=r"driver for 'postgresql\+psycopg' is not installed") as caught:
        Store.open("postgresql+psycopg://someone@host/name")
    assert "pip install 'psycopg[binary]'" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def test_a_server_that_does_not_answer_is_one_line_without_the_password(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        Store.open(f"postgresql+psycopg://someone:secret@/name?host={tmp_path}")
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
