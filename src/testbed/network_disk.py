"""Whether a file lies on a disk of another machine, where SQLite's locks cannot be relied on."""

from __future__ import annotations

from pathlib import Path

_MOUNTS = Path("/proc/self/mountinfo")
_NETWORK = {
    "9p", "afs", "beegfs", "ceph", "cifs", "fuse.beegfs", "fuse.ceph", "fuse.glusterfs", "fuse.juicefs",
    "fuse.sshfs", "gfs2", "glusterfs", "gpfs", "lustre", "ncpfs", "nfs", "nfs4", "ocfs2", "orangefs", "pvfs2", "smb3",
    "smbfs", "wekafs",
}  # fmt: skip


def network_disk(path: Path) -> str | None:
    """Kind of the network disk that a file or folder is on, such as 'nfs4'; None for a local one, or where the system
    does not tell."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text().splitlines()]
    except OSError:
        return None
    wanted = path.absolute()
    wanted = next(known for known in (wanted, *wanted.parents) if known.exists()).resolve()
    # of several mounts in one place the last one counts
    kinds = {_unescaped(fields[4]): fields[fields.index("-") + 1] for fields in mounts if "-" in fields}
    kind = next((kinds[str(folder)] for folder in (wanted, *wanted.parents) if str(folder) in kinds), None)
    return kind if kind in _NETWORK else None


def _unescaped(mount: str) -> str:
    """A mount point with the blanks that the system writes as \\040."""
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        mount = mount.replace(code, character)
    return mount
