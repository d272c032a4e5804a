"""What Alembic runs: the steps on the connection that it was given, inside its transaction."""

from alembic import context

from reticent.service._migrate import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
