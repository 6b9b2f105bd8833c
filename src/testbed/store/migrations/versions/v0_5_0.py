"""A digest per row, and the number of metrics of an evaluation; both are filled at the end of the upgrade."""

import sqlalchemy as sa
from alembic import op

revision = "v0.5.0"
down_revision = "v0.4.0"

KEYS = {
    "models": ["id"],
    "model_versions": ["id"],
    "datasets": ["id"],
    "eval_settings": ["id"],
    "setting_versions": ["id"],
    "runs": ["id"],
    "evaluations": ["id"],
    "logit_shards": ["evaluation_id", "draw", "start"],
    "metrics": ["evaluation_id", "name"],
    "separations": ["id"],
    "published": ["id"],
    "published_models": ["id"],
}


def upgrade() -> None:
    """Adds columns in place: rows of earlier revisions are taken for what they say today."""
    op.add_column("evaluations", sa.Column("num_metrics", sa.Integer(), nullable=True))
    has_none = sa.text("digest IS NULL")
    for table, key in KEYS.items():
        op.add_column(table, sa.Column("digest", sa.String(length=64), nullable=True))
        name = f"ix_{table}_without_digest"
        op.create_index(name, table, key, sqlite_where=has_none, postgresql_where=has_none)
