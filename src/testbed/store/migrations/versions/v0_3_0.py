"""Data sets in which several classes of a sample count as right."""

import sqlalchemy as sa
from alembic import op

revision = "v0.3.0"
down_revision = "v0.2.0"


def upgrade() -> None:
    """Adds a column in place; data sets of earlier revisions have one right class per sample."""
    op.add_column("datasets", sa.Column("label_sets", sa.JSON(), nullable=True))
