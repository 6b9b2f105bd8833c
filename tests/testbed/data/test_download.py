"""Downloads: checked before they are seen, told on stderr, one line when they fail, none where they are forbidden."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.data.download import downloading, fetch
from testbed.errors import DataError
from testbed.offline import downloads_are_forbidden, forbid_downloads, without_downloads

CONTENT = b"1.5,2.5\n"


@pytest.fixture(autouse=True)
def allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TESTBED_NO_DOWNLOAD")


@pytest.fixture
def url(tmp_path: Path) -> str:
    (tmp_path / "origin.csv").write_bytes(CONTENT)
    return (tmp_path / "origin.csv").as_uri()


def test_a_file_is_fetched_once_and_told_of(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "data" / "points" / "points.csv"
    assert fetch(url, target, sha256=sha256(CONTENT)) == target
    assert target.read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["points.csv"]
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"Downloading {url} to {target}\n")
    (tmp_path / "origin.csv").unlink()
    assert fetch(url, target, sha256=sha256(CONTENT)) == target
    assert capsys.readouterr().err == ""


def test_another_content_is_not_kept(url: str, tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=f"What {url} sent is damaged or another file: its SHA-256 is {sha256(CONTENT)}"
    ):
        fetch(url, tmp_path / "points.csv", sha256=sha256(b"other"))
    assert not list(tmp_path.glob("points.csv*"))


def test_a_file_that_is_there_is_checked_too(url: str, tmp_path: Path) -> None:
    (tmp_path / "points.csv").write_bytes(b"other")
    with pytest.raises(DataError, match=r"points\.csv is damaged or another file.*Delete it, and it is downloaded"):
        fetch(url, tmp_path / "points.csv", sha256=sha256(CONTENT))
    assert (tmp_path / "points.csv").read_bytes() == b"other"


def test_a_download_that_fails_is_one_line(tmp_path: Path) -> None:
    nowhere = (tmp_path / "nowhere").as_uri()
    with pytest.raises(DataError, match=r"points.csv is not there\. Downloading it failed \(.*No such file") as caught:
        fetch(nowhere, tmp_path / "points.csv", sha256=sha256(CONTENT))
    assert nowhere in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("failure", [RuntimeError("File not found\n or corrupted."), EOFError(), TimeoutError("slow")])
def test_whatever_a_download_raises_is_a_data_error(failure: Exception, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^Gone\. Downloading it failed \((File not found or c|EOFError|slow)"):
        with downloading("there", tmp_path, missing="Gone."):
            raise failure


def test_what_a_download_prints_is_no_result(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with downloading("there", tmp_path, missing="Gone."):
        print("100 %")
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("value", "is_forbidden"), [("", False), ("0", False), ("1", True), ("yes", True)])
def test_the_variable_forbids(value: str, is_forbidden: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", value)
    assert downloads_are_forbidden() is is_forbidden


def test_nothing_is_fetched_where_that_is_forbidden(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "")
    forbid_downloads()
    with pytest.raises(
        DataError, match=r"points\.csv is not there\. Downloads are forbidden \(--no-download, TESTBED_N"
    ):
        fetch(url, tmp_path / "points.csv", sha256=sha256(CONTENT))
    assert not (tmp_path / "points.csv").exists()


def test_a_program_that_only_looks_fetches_nothing_and_does_not_say_that_the_user_forbade_it(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "")
    with (
        pytest.raises(DataError, match=r"there\. Nothing is downloaded for a look: get it from .* let an evaluation"),
        without_downloads("nothing is downloaded for a look"),
    ):
        fetch(url, tmp_path / "points.csv", sha256=sha256(CONTENT))
    fetch(url, tmp_path / "points.csv", sha256=sha256(CONTENT))  # afterwards it may
    assert (tmp_path / "points.csv").read_bytes() == CONTENT


def test_processes_started_later_are_forbidden_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESTBED_NO_DOWNLOAD", "")
    forbid_downloads()
    code = "import os; print(os.environ['TESTBED_NO_DOWNLOAD'])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
