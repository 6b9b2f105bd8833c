"""Disks of other machines are recognised by what the system says of its mounts."""

from __future__ import annotations

from pathlib import Path

import pytest

from testbed import network_disk as module
from testbed.network_disk import network_disk


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An NFS share under `home`, a local disk mounted within it, and a share with a blank in its name."""
    for name in ("home/scratch", "my share", "home2"):
        (tmp_path / name).mkdir(parents=True)
    escaped = str(tmp_path / "my share").replace(" ", "\\040")
    table = tmp_path / "mountinfo"
    table.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"90 22 0:40 / {tmp_path}/home rw,relatime shared:30 - nfs4 server:/home rw,vers=4.2\n"
        f"91 90 8:2 / {tmp_path}/home/scratch rw,relatime - xfs /dev/sdb1 rw\n"
        f"92 22 0:41 /sub {escaped} rw - cifs //server/share rw\n"
    )
    monkeypatch.setattr(module, "_MOUNTS", table)
    return tmp_path


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("home/results/testbed.sqlite", "nfs4"),
        ("home/scratch/testbed.sqlite", None),
        ("home2/testbed.sqlite", None),
        ("my share/log", "cifs"),
        ("testbed.sqlite", None),
    ],
)
def test_the_nearest_mount_decides(mounts: Path, path: str, kind: str | None) -> None:
    assert network_disk(mounts / path) == kind


def test_a_link_is_followed(mounts: Path) -> None:
    (mounts / "results").symlink_to(mounts / "home")
    assert network_disk(mounts / "results" / "testbed.sqlite") == "nfs4"


def test_nothing_is_said_where_the_system_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOUNTS", tmp_path / "absent")
    assert network_disk(tmp_path / "a.sqlite") is None
