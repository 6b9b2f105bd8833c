"""Merging the definitions: data sets, models and settings, with all their versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Table, insert, select, update

from testbed.store import digests
from testbed.store.merge_report import MergeReport
from testbed.store.merge_rows import Kind, compare
from testbed.store.reader import Reader
from testbed.store.schema import datasets, eval_settings, model_versions, models, setting_versions
from testbed.store.store import Store

DATASETS = Kind(
    table=datasets, key=("fingerprint",), content=("sha256",), what="data set '{name}' ({split})", plural="data sets"
)
Name = tuple[str, ...]
Fingerprint = str


@dataclass(frozen=True, kw_only=True)
class _Named:
    """Names, and the versions under each of them."""

    what: str
    names: Table
    key: tuple[str, ...]
    versions: Table
    owner: str
    facts: tuple[str, ...] = ()  # columns that are found out once a version has been loaded


NAMED = (
    _Named(what="model", names=models, key=("name", "label_space"), versions=model_versions, owner="model_id",
           facts=("weights_sha256", "num_outputs")),
    _Named(what="setting", names=eval_settings, key=("name",), versions=setting_versions, owner="setting_id"),
)  # fmt: skip


def merge_definitions(ours: Store, theirs: Reader, report: MergeReport, *, is_dry_run: bool) -> set[str]:
    """Takes over data sets, models and settings, in one transaction.

    A name is hidden only where both stores hide it. Its current version is that of the store which knows the other's
    as an earlier one; where neither does, the one that was defined later.

    Returns: fingerprints of settings whose data set is in conflict: they and their evaluations are left out.
    """
    if is_dry_run:
        with ours.reading() as here, theirs.reading() as there:
            return _merge(here, there, report, is_dry_run=True)
    with theirs.reading() as there, ours.writing() as here:
        return _merge(here, there, report, is_dry_run=False)


def _merge(here: Connection, there: Connection, report: MergeReport, *, is_dry_run: bool) -> set[str]:
    new, differing = compare(DATASETS, here, there)
    report.add(DATASETS.plural, len(new))
    report.conflicts += [
        f"{DATASETS.what.format(**row)} has other targets, sample ids or label sets" for row in differing
    ]
    if new and not is_dry_run:
        here.execute(insert(datasets), new)
    wanted = select(setting_versions.c.fingerprint, datasets.c.fingerprint).join(datasets)
    marks = {row["fingerprint"] for row in differing}
    refused = {setting for setting, dataset in there.execute(wanted) if dataset in marks}
    for kind in NAMED:
        _merge_named(kind, here, there, refused, report, is_dry_run=is_dry_run)
    return refused


def _merge_named(
    kind: _Named, here: Connection, there: Connection, refused: set[str], report: MergeReport, *, is_dry_run: bool
) -> None:
    known, found = _versions(kind, here), _versions(kind, there)
    for mark, row in found.items():
        if mark in known:
            _compare_version(kind, known[mark], row, report)
    new = {mark: row for mark, row in found.items() if mark not in known and mark not in refused}
    names = {_name(kind, row) for row in known.values()}
    report.add(f"{kind.what}s", len({_name(kind, row) for row in new.values()} - names))
    report.add(f"{kind.what} versions", len(new))
    if is_dry_run:
        return
    _fill_facts(kind, here, known, found)
    for row in new.values():
        here.execute(insert(kind.versions).values(_new_version(kind, here, row)))
    for name in {_name(kind, row) for row in found.values()}:
        _label(kind, here, name, known=known, found=found)


def _versions(kind: _Named, connection: Connection) -> dict[Fingerprint, Row[Any]]:
    """All versions by fingerprint, each with its name, and with the fingerprint of its data set if it has one."""
    {models: digests.check_models, eval_settings: digests.check_settings}[kind.names](connection)
    names = [kind.names.c[name].label(f"owner_{name}") for name in (*kind.key, "hidden", "created_at")]
    wanted = select(kind.versions, *names).join(kind.names)
    if "dataset_id" in kind.versions.c:
        wanted = wanted.add_columns(datasets.c.fingerprint.label("dataset")).join(datasets)
    return {row.fingerprint: row for row in connection.execute(wanted.order_by(kind.versions.c.id))}


def _name(kind: _Named, row: Row[Any]) -> Name:
    return tuple(getattr(row, f"owner_{part}") for part in kind.key)


def _compare_version(kind: _Named, known: Row[Any], found: Row[Any], report: MergeReport) -> None:
    ours, theirs = _name(kind, known), _name(kind, found)
    if ours != theirs:
        report.notes.append(f"{kind.what} '{ours[0]}' is called '{theirs[0]}' there")
    for column in kind.facts:
        before, other = getattr(known, column), getattr(found, column)
        if None not in (before, other) and before != other:
            report.conflicts.append(f"{kind.what} '{ours[0]}' has {column} {before} here and {other} there")


def _fill_facts(
    kind: _Named, here: Connection, known: Mapping[Fingerprint, Row[Any]], found: Mapping[Fingerprint, Row[Any]]
) -> None:
    for mark in known.keys() & found.keys():
        facts = {name: getattr(found[mark], name) for name in kind.facts if getattr(known[mark], name) is None}
        facts = {name: value for name, value in facts.items() if value is not None}
        if facts:
            here.execute(update(kind.versions).where(kind.versions.c.fingerprint == mark).values(facts))


def _new_version(kind: _Named, here: Connection, row: Row[Any]) -> dict[str, Any]:
    own = {"id", "is_current", kind.owner, "dataset_id", "digest"}
    values = {column.name: row._mapping[column.name] for column in kind.versions.c if column.name not in own}
    if "dataset_id" in kind.versions.c:
        values["dataset_id"] = here.scalar(select(datasets.c.id).where(datasets.c.fingerprint == row.dataset))
    return {**values, "is_current": False, kind.owner: _owner(kind, here, row)}


def _owner(kind: _Named, here: Connection, row: Row[Any]) -> int:
    """Id of the version's name, made if need be."""
    key = dict(zip(kind.key, _name(kind, row), strict=True))
    owner = here.scalar(select(kind.names.c.id).filter_by(**key))
    if owner is None:
        values = {**key, "hidden": row.owner_hidden, "created_at": row.owner_created_at}
        owner = here.execute(insert(kind.names).values(values).returning(kind.names.c.id)).scalar_one()
    return int(owner)


def _label(
    kind: _Named,
    here: Connection,
    name: Name,
    *,
    known: Mapping[Fingerprint, Row[Any]],
    found: Mapping[Fingerprint, Row[Any]],
) -> None:
    """Decides which version of a name is the current one, and whether the name is hidden."""
    owner = here.scalar(select(kind.names.c.id).filter_by(**dict(zip(kind.key, name, strict=True))))
    if owner is None:  # all its versions have another name here
        return
    ours = {mark: row for mark, row in known.items() if _name(kind, row) == name}
    theirs = {mark: row for mark, row in found.items() if _name(kind, row) == name}
    under_name = kind.versions.c[kind.owner] == owner
    here_now = set(here.scalars(select(kind.versions.c.fingerprint).where(under_name)))
    current = _current(ours, {mark: row for mark, row in theirs.items() if mark in here_now})
    here.execute(update(kind.versions).where(under_name).values(is_current=kind.versions.c.fingerprint == current))
    is_hidden = all(row.owner_hidden for row in (*ours.values(), *theirs.values()))
    here.execute(update(kind.names).where(kind.names.c.id == owner).values(hidden=is_hidden))


def _current(ours: Mapping[Fingerprint, Row[Any]], theirs: Mapping[Fingerprint, Row[Any]]) -> Fingerprint:
    """The version that is current after a merge; the same whichever of the two stores is ours."""
    here, there = (next((m for m, row in rows.items() if row.is_current), None) for rows in (ours, theirs))
    if here is None or there is None or here == there:
        return here or there or max(theirs)
    if (there in ours) != (here in theirs):  # one of the stores has seen both
        return here if there in ours else there
    first_seen = {mark: min(rows[mark].created_at for rows in (ours, theirs) if mark in rows) for mark in (here, there)}
    return max((here, there), key=lambda mark: (first_seen[mark], mark))
