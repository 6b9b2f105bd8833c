"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "v0.1.0"
down_revision = None


def upgrade() -> None:
    """Makes the tables."""
    op.create_table(
        "datasets",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("split", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("class_names", sa.JSON(), nullable=False),
        sa.Column("targets", sa.LargeBinary(), nullable=False),
        sa.Column("sample_ids", sa.LargeBinary(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_datasets_fingerprint")),
    )
    op.create_table(
        "eval_settings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_eval_settings")),
        sa.UniqueConstraint("name", name=op.f("uq_eval_settings_name")),
    )
    op.create_table(
        "locks",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("host", sa.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("heartbeat_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_after", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_locks")),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_meta")),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("label_space", sa.Text(), nullable=False),
        sa.Column("hidden", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_models")),
        sa.UniqueConstraint("name", "label_space", name=op.f("uq_models_name_label_space")),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("host", sa.Text(), nullable=True),
        sa.Column("pid", sa.Integer(), nullable=True),
        sa.Column("user", sa.Text(), nullable=True),
        sa.Column("code_revision", sa.Text(), nullable=True),
        sa.Column("argv", sa.JSON(), nullable=True),
        sa.Column("versions", sa.JSON(), nullable=True),
        sa.Column("devices", sa.JSON(), nullable=True),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("exit_status", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_runs")),
    )
    op.create_table(
        "separations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("dataset", sa.Text(), nullable=False),
        sa.Column("splits", sa.Text(), nullable=False),
        sa.Column("data_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("norm", sa.Text(), nullable=False),
        sa.Column("space", sa.Text(), nullable=False),
        sa.Column("min_distance", sa.Double(), nullable=False),
        sa.Column("pair_first", sa.Integer(), nullable=False),
        sa.Column("pair_second", sa.Integer(), nullable=False),
        sa.Column("pair_ids", sa.JSON(), nullable=False),
        sa.Column("num_points", sa.Integer(), nullable=False),
        sa.Column("exact", sa.Boolean(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_separations")),
        sa.UniqueConstraint("dataset", "splits", "data_fingerprint", "norm", "space", name="uq_separations_key"),
    )
    op.create_table(
        "model_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model_id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("weights_sha256", sa.String(length=64), nullable=True),
        sa.Column("num_outputs", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.ForeignKeyConstraint(["model_id"], ["models.id"], name=op.f("fk_model_versions_model_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_model_versions")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_model_versions_fingerprint")),
    )
    op.create_index(op.f("ix_model_versions_model_id"), "model_versions", ["model_id"], unique=False)
    op.create_table(
        "setting_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("setting_id", sa.Integer(), nullable=False),
        sa.Column("dataset_id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=64), nullable=False),
        sa.Column("is_current", sa.Boolean(), nullable=False),
        sa.Column("spec", sa.JSON(), nullable=False),
        sa.Column("shift_family", sa.Text(), nullable=True),
        sa.Column("shift_name", sa.Text(), nullable=True),
        sa.Column("shift_severity", sa.Integer(), nullable=True),
        sa.Column("shift_norm", sa.Text(), nullable=True),
        sa.Column("shift_epsilon", sa.Double(), nullable=True),
        sa.Column("clean_eval_setting", sa.Text(), nullable=True),
        sa.Column("class_sublist", sa.JSON(), nullable=True),
        sa.Column("sample_indices", sa.LargeBinary(), nullable=True),
        sa.Column("sample_indices_sha256", sa.String(length=64), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_setting_versions_dataset_id")),
        sa.ForeignKeyConstraint(["setting_id"], ["eval_settings.id"], name=op.f("fk_setting_versions_setting_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_setting_versions")),
        sa.UniqueConstraint("fingerprint", name=op.f("uq_setting_versions_fingerprint")),
    )
    op.create_index(op.f("ix_setting_versions_dataset_id"), "setting_versions", ["dataset_id"], unique=False)
    op.create_index(op.f("ix_setting_versions_setting_id"), "setting_versions", ["setting_id"], unique=False)
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("model_version_id", sa.Integer(), nullable=False),
        sa.Column("setting_version_id", sa.Integer(), nullable=False),
        sa.Column("fit_seed", sa.BigInteger(), nullable=False),
        sa.Column("noise_seed", sa.BigInteger(), nullable=False),
        sa.Column("numerics_fingerprint", sa.String(length=64), nullable=False),
        sa.Column("numerics", sa.JSON(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("num_draws", sa.Integer(), nullable=False),
        sa.Column("shard_size", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("run_id", sa.Integer(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.func.now(), nullable=False),
        sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status in ('pending', 'running', 'complete', 'partial', 'failed')", name=op.f("ck_evaluations_status")
        ),
        sa.ForeignKeyConstraint(
            ["model_version_id"], ["model_versions.id"], name=op.f("fk_evaluations_model_version_id")
        ),
        sa.ForeignKeyConstraint(["run_id"], ["runs.id"], name=op.f("fk_evaluations_run_id")),
        sa.ForeignKeyConstraint(
            ["setting_version_id"], ["setting_versions.id"], name=op.f("fk_evaluations_setting_version_id")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_evaluations")),
        sa.UniqueConstraint(
            "model_version_id",
            "setting_version_id",
            "fit_seed",
            "noise_seed",
            "numerics_fingerprint",
            name="uq_evaluations_key",
        ),
    )
    op.create_index(
        "ix_evaluations_setting_version_id_status", "evaluations", ["setting_version_id", "status"], unique=False
    )
    op.create_table(
        "logit_shards",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("draw", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("stop", sa.Integer(), nullable=False),
        sa.Column("codec", sa.Text(), nullable=False),
        sa.Column("num_outputs", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("labels_sha256", sa.String(length=64), nullable=False),
        sa.Column("num_nonfinite", sa.Integer(), nullable=False),
        sa.Column("batch_size", sa.Integer(), nullable=False),
        sa.Column("seconds", sa.Double(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("predictions", sa.LargeBinary(), nullable=False),
        sa.Column("target_ranks", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name=op.f("fk_logit_shards_evaluation_id"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "draw", "start", name=op.f("pk_logit_shards")),
    )
    op.create_table(
        "metrics",
        sa.Column("evaluation_id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.Double(), nullable=True),
        sa.Column("ci_low", sa.Double(), nullable=True),
        sa.Column("ci_high", sa.Double(), nullable=True),
        sa.Column("method", sa.Text(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("detail", sa.JSON(), nullable=False),
        sa.Column("reference_evaluation_id", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name=op.f("fk_metrics_evaluation_id"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["reference_evaluation_id"],
            ["evaluations.id"],
            name=op.f("fk_metrics_reference_evaluation_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "name", name=op.f("pk_metrics")),
    )
    op.create_index(op.f("ix_metrics_reference_evaluation_id"), "metrics", ["reference_evaluation_id"], unique=False)
    op.create_table(
        "logit_payloads",
        sa.Column("evaluation_id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("draw", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("start", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["evaluation_id", "draw", "start"],
            ["logit_shards.evaluation_id", "logit_shards.draw", "logit_shards.start"],
            name=op.f("fk_logit_payloads_evaluation_id_draw_start"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("evaluation_id", "draw", "start", name=op.f("pk_logit_payloads")),
    )
