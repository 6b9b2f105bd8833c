"""The parts of a database URL: used, or refused with what to do; never cut off, and never shown where secret."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.postgresql import Server

from testbed.errors import StoreError
from testbed.store.database_url import parse_url, shown_url
from testbed.store.store import Store

HIDDEN = "tops3cret"


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("sqlite:///{folder}/a?b.sqlite", "give the path alone"),
        ("sqlite:///{folder}/a.sqlite?mode=ro", "Leave them out"),
        ("sqlite:///{folder}/a.sqlite?", "Leave them out"),
        ("sqlite:///?x", "Leave them out"),
        ("sqlite://host/{folder}/a.sqlite", "Give sqlite:///FILE"),
        ("sqlite://me:tops3cret@/{folder}/a.sqlite", "Give sqlite:///FILE"),
        ("postgresql+psycopg://me:tops3cret@host:port/db", "USER@HOST:PORT/NAME"),
        ("postgresql+psycopg://host:99999999/db?password=tops3cret", "."),
        ("postgresql+psycopg://me@host/db?pasword=tops3cret", "Did you mean password"),
        ("postgresql+psycopg://me@host/db?colour=tops3cret", "'colour' is no option.*Leave it out"),
        ("host=nowhere password=tops3cret dbname=x", r"Write it as postgresql\+psycopg://"),
        ("mysql://me:tops3cret@host/x", "'mysql' are not supported"),
    ],
)
def test_a_part_that_would_not_be_used_is_refused(
    tmp_path: Path, url: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StoreError, match=remedy) as caught:
        Store.open(url.format(folder=tmp_path))
    assert HIDDEN not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_a_question_mark_is_named_by_its_path(tmp_path: Path) -> None:
    path = tmp_path / "a?b.sqlite"
    with Store.open(str(path)) as store:
        assert store.url == str(path)
    with Store.open(store.url, create=False):
        assert path.exists()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://me:tops3cret@/db?host=/nowhere",
        "postgresql+psycopg:///db?host=/nowhere&password=tops3cret",
        "postgresql+psycopg:///db?host=/nowhere&sslpassword=tops3cret",
        "postgresql+psycopg:///db?host=/nowhere&service=tops3cret",
        "postgresql+psycopg:///db?host=/nowhere&passfile=tops3cret&user=me",
        "postgresql+psycopg:///db?host=/nowhere&require_auth=tops3cret",
        "postgresql+psycopg:///db?host=/nowhere&options=tops3cret",
    ],
)
def test_the_message_of_a_driver_shows_no_secret(url: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        Store.open(url)
    assert HIDDEN not in str(caught.value)


def test_a_server_is_reached_by_options_and_shown_without_its_password(postgresql: Server) -> None:
    url = f"{postgresql.new_database()}&password={HIDDEN}"
    with Store.open(url) as store:
        assert store.url.endswith("&password=***")
        assert HIDDEN not in store.url


def test_a_path_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    for url in (tmp_path / "a\udcff.sqlite", f"sqlite:///{tmp_path}/a\udcff.sqlite", "postgresql+psycopg:///d\udcff"):
        with pytest.raises(StoreError, match=r"is not UTF-8. Give another"):
            Store.open(url)


@pytest.mark.parametrize("name", ["Übung 1", "run #3", "100%", "a%20b", "plain"])
def test_the_name_of_a_file_is_shown_as_it_was_given_and_names_it_again(name: str, tmp_path: Path) -> None:
    file = tmp_path / name / "s.sqlite"
    shown = shown_url(parse_url(file))
    assert shown.endswith(str(file))
    assert parse_url(shown).database == str(file)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:p@tops3cret@127.0.0.1:1/db",
        "postgresql://me@127.0.0.1:1/db#password=tops3cret",
        "postgresql:/me:tops3cret@host/db",
        "me:tops3cret@127.0.0.1/db",
        "sqlite:relative.sqlite",
    ],
)
def test_a_mistyped_url_is_refused_and_shows_no_secret(url: str) -> None:
    with pytest.raises(StoreError) as found:
        parse_url(url)
    assert "tops3cret" not in str(found.value)


def test_a_port_that_is_no_number_is_refused_as_an_option_too() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match="Correct that option"):
        Store.open("postgresql+psycopg:///db?host=h&port=abc")
