"""The tables. Content fingerprints are identity, names are labels, and large values lie in tables of their own."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    false,
    func,
    null,
    text,
)

from testbed.store.columns import Int32Array, UtcDateTime

APPLICATION = "robustness-testbed"
# Every schema there has been, oldest first; each has a file under migrations/versions.
REVISIONS = ("v0.1.0", "v0.2.0", "v0.3.0", "v0.4.0", "v0.5.0")
STATUSES = ("pending", "running", "complete", "partial", "failed")

# Constraints need names, or SQLite's batch migrations cannot drop them.
metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _id() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _created_at() -> Column[Any]:
    return Column("created_at", UtcDateTime, nullable=False, server_default=func.now())


def _json(name: str, *, nullable: bool = False) -> Column[Any]:
    return Column(name, JSON(none_as_null=True), nullable=nullable)


def _digest() -> Column[Any]:
    """Of the row's other columns, see `testbed.store.digests`; a statement that changes the row takes it away."""
    return Column("digest", String(64), onupdate=null())


meta = Table("meta", metadata, Column("key", Text, primary_key=True), Column("value", Text, nullable=False))

locks = Table(
    "locks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("token", String(32), nullable=False),
    Column("host", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("heartbeat_at", UtcDateTime, nullable=False),
    Column("expires_after", Double, nullable=False),  # seconds
)

models = Table(
    "models",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("label_space", Text, nullable=False),
    Column("hidden", Boolean, nullable=False),
    _created_at(),
    _digest(),
    UniqueConstraint("name", "label_space"),
)

model_versions = Table(
    "model_versions",
    metadata,
    _id(),
    Column("model_id", ForeignKey("models.id"), nullable=False, index=True),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("is_current", Boolean, nullable=False),
    _json("spec"),
    Column("weights_sha256", String(64)),
    Column("num_outputs", Integer),
    _created_at(),
    _digest(),
)

datasets = Table(
    "datasets",
    metadata,
    _id(),
    Column("name", Text, nullable=False),
    Column("split", Text, nullable=False),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("n", Integer, nullable=False),
    _json("class_names"),
    Column("targets", Int32Array, nullable=False),
    Column("sample_ids", LargeBinary, nullable=False),  # a JSON list: file names may hold any other separator
    Column("sha256", String(64), nullable=False),  # of targets, sample_ids, and label_sets where there are any
    _created_at(),
    _json("label_sets", nullable=True),  # for each sample all classes that count as right
    _digest(),
)

eval_settings = Table(
    "eval_settings",
    metadata,
    _id(),
    Column("name", Text, nullable=False, unique=True),
    Column("hidden", Boolean, nullable=False),
    _created_at(),
    _digest(),
)

setting_versions = Table(
    "setting_versions",
    metadata,
    _id(),
    Column("setting_id", ForeignKey("eval_settings.id"), nullable=False, index=True),
    Column("dataset_id", ForeignKey("datasets.id"), nullable=False, index=True),
    Column("fingerprint", String(64), nullable=False, unique=True),
    Column("is_current", Boolean, nullable=False),
    _json("spec"),
    Column("shift_family", Text),
    Column("shift_name", Text),
    Column("shift_severity", Integer),
    Column("shift_norm", Text),
    Column("shift_epsilon", Double),
    Column("clean_eval_setting", Text),
    _json("class_sublist", nullable=True),
    Column("sample_indices", Int32Array),
    Column("sample_indices_sha256", String(64)),
    _created_at(),
    _digest(),
)

runs = Table(
    "runs",
    metadata,
    _id(),
    Column("started_at", UtcDateTime, nullable=False, server_default=func.now()),
    Column("finished_at", UtcDateTime),
    Column("host", Text),
    Column("pid", Integer),
    Column("user", Text),
    Column("code_revision", Text),
    _json("argv", nullable=True),
    _json("versions", nullable=True),
    _json("devices", nullable=True),
    _json("detail"),
    Column("exit_status", Integer),
    Column("uuid", String(32), default=lambda: uuid4().hex),  # the same run in every database that it is merged into
    _digest(),
    Index("uq_runs_uuid", "uuid", unique=True),
)

evaluations = Table(
    "evaluations",
    metadata,
    _id(),
    Column("model_version_id", ForeignKey("model_versions.id"), nullable=False),
    Column("setting_version_id", ForeignKey("setting_versions.id"), nullable=False),
    Column("fit_seed", BigInteger, nullable=False),
    Column("noise_seed", BigInteger, nullable=False),
    Column("numerics_fingerprint", String(64), nullable=False),
    _json("numerics"),
    Column("n", Integer, nullable=False),
    Column("num_draws", Integer, nullable=False),
    Column("shard_size", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("run_id", ForeignKey("runs.id")),
    _created_at(),
    Column("completed_at", UtcDateTime),
    Column("hidden", Boolean, nullable=False, server_default=false()),  # removed, and can be restored
    Column("num_metrics", Integer),  # its own and its comparisons, so that none goes unnoticed
    _digest(),
    UniqueConstraint(
        "model_version_id", "setting_version_id", "fit_seed", "noise_seed", "numerics_fingerprint",
        name="uq_evaluations_key",
    ),
    CheckConstraint(f"status in {STATUSES}", name="status"),
    Index("ix_evaluations_setting_version_id_status", "setting_version_id", "status"),
    # Answers alone what is done: 400 x 400 evaluations are counted in less than a tenth of a second.
    Index("ix_evaluations_status", "hidden", "status", "model_version_id", "setting_version_id", "run_id"),
)  # fmt: skip

logit_shards = Table(
    "logit_shards",
    metadata,
    Column("evaluation_id", ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True),
    Column("draw", Integer, primary_key=True, autoincrement=False),
    Column("start", Integer, primary_key=True, autoincrement=False),
    Column("stop", Integer, nullable=False),
    Column("codec", Text, nullable=False),
    Column("num_outputs", Integer, nullable=False),
    Column("sha256", String(64), nullable=False),  # of the payload
    Column("labels_sha256", String(64), nullable=False),  # of predictions and target_ranks
    Column("num_nonfinite", Integer, nullable=False),
    Column("batch_size", Integer, nullable=False),
    Column("seconds", Double, nullable=False),
    Column("worker", Text, nullable=False),
    Column("predictions", Int32Array, nullable=False),
    Column("target_ranks", Int32Array, nullable=False),
    _digest(),
)

# Megabytes a row, apart from the rest: metrics and resume never page through them.
logit_payloads = Table(
    "logit_payloads",
    metadata,
    Column("evaluation_id", Integer, primary_key=True, autoincrement=False),
    Column("draw", Integer, primary_key=True, autoincrement=False),
    Column("start", Integer, primary_key=True, autoincrement=False),
    Column("payload", LargeBinary, nullable=False),
    ForeignKeyConstraint(
        ["evaluation_id", "draw", "start"],
        ["logit_shards.evaluation_id", "logit_shards.draw", "logit_shards.start"],
        ondelete="CASCADE",
    ),
)

metrics = Table(
    "metrics",
    metadata,
    Column("evaluation_id", ForeignKey("evaluations.id", ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Double),
    Column("ci_low", Double),
    Column("ci_high", Double),
    Column("method", Text, nullable=False),
    Column("n", Integer, nullable=False),
    Column("reason", Text, nullable=False),
    _json("detail"),
    # The clean evaluation that a comparison was made with.
    Column("reference_evaluation_id", ForeignKey("evaluations.id", ondelete="CASCADE"), index=True),
    _digest(),
)

separations = Table(
    "separations",
    metadata,
    _id(),
    Column("dataset", Text, nullable=False),
    Column("splits", Text, nullable=False),  # joined by '+' in the order in which they were searched
    Column("data_fingerprint", String(64), nullable=False),  # of all these splits' data
    Column("norm", Text, nullable=False),
    Column("space", Text, nullable=False),
    Column("min_distance", Double, nullable=False),
    Column("pair_first", Integer, nullable=False),
    Column("pair_second", Integer, nullable=False),
    _json("pair_ids"),
    Column("num_points", Integer, nullable=False),
    Column("exact", Boolean, nullable=False),
    _json("detail"),
    _created_at(),
    _digest(),
    UniqueConstraint("dataset", "splits", "data_fingerprint", "norm", "space", name="uq_separations_key"),
)

# Numbers from papers and other testbeds: no logits, no intervals, and never mixed with our own.
published = Table(
    "published",
    metadata,
    _id(),
    Column("source", Text, nullable=False),
    Column("source_sha256", String(64), nullable=False),  # of the file they were read from
    Column("model", Text, nullable=False),
    Column("input_size", Integer, nullable=False),  # pixels; 0 where the source does not say: no two NULLs are equal
    Column("protocol", Text, nullable=False),
    Column("eval_setting", Text, nullable=False),
    Column("metric", Text, nullable=False),
    Column("value", Double),
    Column("flag", Text, nullable=False),  # what is known to be wrong with it; else empty
    Column("imported_at", UtcDateTime, nullable=False, server_default=func.now()),
    _digest(),
    UniqueConstraint(
        "source", "model", "input_size", "eval_setting", "metric", "protocol", name="uq_published_key"
    ),
)  # fmt: skip

# What the sources say of their models, whether or not they have numbers of them.
published_models = Table(
    "published_models",
    metadata,
    _id(),
    Column("source", Text, nullable=False),
    Column("source_sha256", String(64), nullable=False),  # of the file it was read from
    Column("model", Text, nullable=False),
    Column("model_type", Text, nullable=False),
    Column("imported_at", UtcDateTime, nullable=False, server_default=func.now()),
    _digest(),
    UniqueConstraint("source", "model", name="uq_published_models_key"),
)

# Finds the rows of a transaction that have no digest yet, however many have one.
for _table in [table for table in metadata.tables.values() if "digest" in table.c]:
    _has_none = text("digest IS NULL")
    Index(
        f"ix_{_table.name}_without_digest", *_table.primary_key, sqlite_where=_has_none, postgresql_where=_has_none
    )  # fmt: skip

# Alembic's own table, written here as well so that creating a database need not import alembic.
alembic_version = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), primary_key=True),
)
