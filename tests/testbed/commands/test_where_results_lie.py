"""A database that is not there: whoever evaluated without --db is told where the results lie."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from testbed.commands.action import reading
from testbed.errors import StoreError
from testbed.store.store import Store


@pytest.mark.parametrize("named", [{}, {"db_url": "other.sqlite"}, {"logdir": Path("other")}])
def test_results_of_a_log_directory_are_pointed_at_where_no_database_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: dict[str, Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    options = {"logdir": None, "db_url": None, **named}
    with pytest.raises(StoreError, match=r"There is no database at .*Check the path"):
        reading(options)
    Store.open("results/log/evaluations.sqlite").close()
    words = "Check the path" if named else "without --db lie in a log directory: add --logdir results/log"
    with pytest.raises(StoreError, match=f"There is no database at .*{words}"):
        reading(options)
