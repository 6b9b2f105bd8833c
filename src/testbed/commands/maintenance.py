"""Actions of `db.py` that look after the database itself: upgrade, verify, compact, and where everything lies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from testbed.cli import EXIT_SOME_FAILED, say
from testbed.commands.action import Options, definitions, print_json, reading, store_url, writing
from testbed.commands.places import sqlite_file
from testbed.data.eviction import kept_banks
from testbed.masking import masked
from testbed.paths import cache_root, data_root
from testbed.store import lock, revision, verification
from testbed.store.database import Database
from testbed.store.verification import Verification


def upgrade(options: Options) -> None:
    """Brings the database to this version's schema, after a backup."""
    backup = revision.upgrade(store_url(options))
    kept = f" A backup of what it was is {backup}." if backup else ""
    say(f"The database has this version's schema.{kept}")


def release_lock(options: Options) -> None:
    """Gives back the lock of a program that no longer runs; with --override also of one on another machine."""
    database = Database(store_url(options), create=False)  # of any schema: an upgrade may wait for this
    try:
        owner = lock.release_lock(database, is_told_dead=options["override"])
    finally:
        database.close()
    say("The database is free." if owner is None else f"Released the lock of {owner}, which no longer runs.")


def verify(options: Options) -> int:
    """Reads and checks everything; with --repair mends what can be computed again. Exit code 1 for findings."""
    from testbed import metric_check

    num_reopened = num_recomputed = 0
    if options["repair"]:
        definitions(options)  # settings and plugins bring metrics of their own
        with writing(options, "--verify --repair") as store:
            found = metric_check.verify(store)
            num_reopened = verification.repair(store, found.findings)
            num_recomputed = metric_check.repair(store, found.findings)
    else:
        with reading(options) as store:
            found = metric_check.verify(store)
    if options["as_json"]:
        print_json({**asdict(found), "num_reopened": num_reopened, "num_recomputed": num_recomputed})
    else:
        _tell(found, num_reopened, num_recomputed)
    is_mended = options["repair"] and all(finding.can_be_mended for finding in found.findings)
    return EXIT_SOME_FAILED if found.findings and not is_mended else 0


def compact(options: Options) -> None:
    """Gives unused space back to the disk."""
    with writing(options, "--compact") as store:
        before = store.database.size()
        store.database.compact()
        after = store.database.size()
    say(f"Compacted the database from {before:,} to {after:,} bytes.")


def paths(options: Options) -> None:
    """Prints where everything lies, with sizes."""
    found = list(_places(options))
    if options["as_json"]:
        print_json([{"what": one.what, "path": str(one.path), "bytes": one.num_bytes, **one.counts} for one in found])
    else:
        for one in found:
            size = "not there" if one.num_bytes is None else f"{one.num_bytes:,} bytes"
            print(f"{one.what}: {one.path} ({', '.join([size, *(f'{n} {word}' for word, n in one.counts.items())])})")


def _tell(found: Verification, num_reopened: int, num_recomputed: int) -> None:
    for finding in found.findings:
        print(finding.text)
    looked_at = f"{found.num_evaluations} evaluation(s) in {found.num_shards} piece(s)"
    say(f"Verified {looked_at}: {len(found.findings)} finding(s).")
    if num_recomputed:
        say(f"Recomputed the metrics of {num_recomputed} evaluation(s).")
    if num_reopened:
        say(f"{num_reopened} evaluation(s) are open again: run their eval.py command, which computes what is missing.")
    elif not num_recomputed and any(finding.can_be_mended for finding in found.findings):
        say("--verify --repair takes damaged pieces out, so that eval.py computes them again, and recomputes metrics.")


@dataclass(frozen=True)
class _Place:
    """Something on disk: its size in bytes, None where it is not there, and how many of what it holds."""

    what: str
    path: Path | str
    num_bytes: int | None
    counts: Mapping[str, int] = field(default_factory=dict)


def _places(options: Options) -> Iterator[_Place]:
    url = store_url(options)
    file = sqlite_file(url)
    if file is not None:
        beside = [file.with_name(file.name + suffix) for suffix in ("", "-wal", "-shm")]
        yield _Place("database", file.absolute(), _size(beside) if file.exists() else None)
        for backup in sorted(file.absolute().parent.glob(f"{file.name}.*.bak")):
            yield _Place("backup", backup, _size([backup]))
    else:
        yield _Place("database", masked(url), None)
    checkpoints = Path("checkpoints").absolute()
    for what, folder in (("caches", cache_root()), ("data sets", data_root()), ("checkpoints", checkpoints)):
        yield _Place(what, folder.absolute(), _size(folder.rglob("*")) if folder.exists() else None)
        if what == "caches":
            yield _image_banks(folder.absolute() / "bank")


def _image_banks(folder: Path) -> _Place:
    """Part of the caches: decoded images, of which the oldest go when others need their place."""
    banks = kept_banks(folder)
    whole = sum(bank.is_whole for bank in banks)
    num_bytes = sum(bank.num_bytes for bank in banks) if folder.exists() else None
    return _Place("image banks", folder, num_bytes, {"whole": whole, "partial": len(banks) - whole})


def _size(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())
