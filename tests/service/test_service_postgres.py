"""The service on PostgreSQL: migrations, kills of connections under load, and the transcript of an undisturbed run."""

import threading

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from postgres import running
from served import QUANTILE, Process
from sqlalchemy import create_engine, text
from test_service_kills import made, rounds_of, transcript, undisturbed
from test_service_store import both

from reticent.client import Client
from reticent.fleet import Store
from reticent.service._migrate import VERSION_TABLE, migrate

KILLS = {"few": 5, "many": 200}


@pytest.fixture(scope="module")
def server():
    """A server of its own."""
    yield from running()


@pytest.fixture
def fresh(server):
    """An empty database, by its URL."""
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text("DROP DATABASE IF EXISTS served WITH (FORCE)"))
        connection.execute(text("CREATE DATABASE served"))
    engine.dispose()
    return server.replace("/postgres?", "/served?")


def test_migrations_make_the_tables_that_the_code_has(fresh):
    store = Store(fresh, create=False)
    migrate(store.engine)
    with store.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE, "compare_type": True})
        assert compare_metadata(context, both(store)) == []
    store.close()


@pytest.mark.parametrize("kills", ["few", pytest.param("many", marks=pytest.mark.slow)])
def test_connections_that_are_cut_under_load_change_nothing(tmp_path, fresh, kills):
    columns = rounds_of("quantile", 3000)
    for name in ("calm", "wild"):
        (tmp_path / name).mkdir()
    calm = undisturbed(tmp_path / "calm", QUANTILE, columns, 100)
    engine, state = create_engine(fresh, isolation_level="AUTOCOMMIT"), {"kills": 0, "stop": False}
    mine = "pid <> pg_backend_pid() AND datname = 'served'"
    others = text(f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {mine}")

    def cut():
        while not state["stop"] and state["kills"] < KILLS[kills]:
            with engine.connect() as connection:
                state["kills"] += bool(connection.execute(others).scalar())

    guard = str(tmp_path / "guard")
    with (
        Process(tmp_path / "wild", "--store", fresh, "--guard", guard) as served,
        Client(served.url, served.key, patience=120.0) as client,
    ):
        learner = made(client, QUANTILE)
        thread = threading.Thread(target=cut)
        thread.start()
        try:
            while True:
                wild = transcript(learner, columns, 100)
                if state["kills"] >= KILLS[kills]:
                    break
        finally:
            state["stop"] = True
            thread.join(60)
    engine.dispose()
    assert wild == calm
