"""Removed evaluations that can be restored, runs with an identity across databases, and published numbers."""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "v0.2.0"
down_revision = "v0.1.0"


def upgrade() -> None:
    """Adds columns in place: SQLite's way of altering a table by copying it would delete what refers to it."""
    op.add_column("evaluations", sa.Column("hidden", sa.Boolean(), nullable=False, server_default=sa.false()))
    status_columns = ["hidden", "status", "model_version_id", "setting_version_id", "run_id"]
    op.create_index("ix_evaluations_status", "evaluations", status_columns)
    op.add_column("runs", sa.Column("uuid", sa.String(length=32), nullable=True))
    _name_runs(op.get_bind())
    op.create_index("uq_runs_uuid", "runs", ["uuid"], unique=True)
    op.create_table(
        "published",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_sha256", sa.String(length=64), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("input_size", sa.Integer(), nullable=False),
        sa.Column("protocol", sa.Text(), nullable=False),
        sa.Column("eval_setting", sa.Text(), nullable=False),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("flag", sa.Text(), nullable=False),
        sa.Column("imported_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_published")),
        sa.UniqueConstraint(
            "source", "model", "input_size", "eval_setting", "metric", "protocol", name="uq_published_key"
        ),
    )


def _name_runs(connection: sa.Connection) -> None:
    """Gives the runs of earlier revisions an identity that is the same in every copy of their database."""
    columns = ("id", "started_at", "host", "pid", "user", "code_revision", "exit_status")
    runs = sa.table("runs", *(sa.column(name) for name in (*columns, "uuid")))
    for row in connection.execute(sa.select(*(runs.c[name] for name in columns))).all():
        text = json.dumps([str(value) for value in row])
        uuid = hashlib.sha256(text.encode()).hexdigest()[:32]
        connection.execute(sa.update(runs).where(runs.c.id == row.id).values(uuid=uuid))
