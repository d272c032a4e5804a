"""Brings the tables of a store to the form that this version needs: those of fleets and those of the service."""

from __future__ import annotations

import logging
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, text

VERSION_TABLE = "reticent_service_version"
_LOCK = 0x7E71CE47  # any number that nobody else locks: two servers that start at once migrate one after the other


def configuration() -> Config:
    """Return where the migrations are: inside the package."""
    found = Config()
    found.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return found


def migrate(engine: Engine) -> None:
    """Run what is missing, in one transaction; a store of a later version is refused."""
    logging.getLogger("alembic").setLevel(logging.WARNING)
    config = configuration()
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        found, known = (
            present(connection),
            {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()},
        )
        if found is not None and found not in known:
            raise ValueError(
                f"the store is of version {found}, which this program does not know; start the later version that made "
                "it, or restore nothing and ask"
            )
        config.attributes["connection"] = connection
        command.upgrade(config, "head")


def present(connection: Connection) -> str | None:
    """Return the version of a store; None for a new one."""
    context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
    return context.get_current_revision()
