"""Run by alembic, with the connection that `testbed.store.revision.migrate` hands over."""

from alembic import context

from testbed.store.schema import metadata


def run() -> None:
    """Runs the migrations in the transaction of the connection that was handed over."""
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        render_as_batch=True,  # SQLite alters a table by copying it
    )
    with context.begin_transaction():
        context.run_migrations()


if hasattr(context, "config"):  # as it is when alembic runs this file, not when somebody imports it
    run()
