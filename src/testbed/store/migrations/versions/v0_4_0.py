"""What is known of published models."""

import sqlalchemy as sa
from alembic import op

revision = "v0.4.0"
down_revision = "v0.3.0"


def upgrade() -> None:
    """Adds a table; what others published before had no types of models."""
    op.create_table(
        "published_models",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("source_sha256", sa.String(length=64), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("model_type", sa.Text(), nullable=False),
        sa.Column("imported_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_published_models")),
        sa.UniqueConstraint("source", "model", name="uq_published_models_key"),
    )
