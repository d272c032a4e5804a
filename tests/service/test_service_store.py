"""The store of a service: migrations, old copies, two servers on one, and a store that goes away."""

import shutil
import sqlite3

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from served import QUANTILE, Process, inside, make, post, problem
from sqlalchemy import MetaData, text

import reticent as rt
from reticent.client import Client
from reticent.fleet import Spec, Store
from reticent.service._migrate import VERSION_TABLE, migrate
from reticent.service._tables import METADATA

VALUES = np.random.default_rng(5).gamma(4.0, 50.0, 3000).round(2)


def chunk(i):
    return {"columns": {"values": VALUES[100 * i : 100 * i + 100].tolist()}}


def both(store):
    """Return the tables of fleets and of the service together."""
    found = MetaData()
    for part in (store.metadata, METADATA):
        for table in part.tables.values():
            table.to_metadata(found)
    return found


@pytest.mark.parametrize("begun", [False, True], ids=["new", "after a fleet"])
def test_migrations_make_the_tables_that_the_code_has(tmp_path, begun):
    path = tmp_path / "s.db"
    if begun:
        spec = Spec(rt.PrivateMean, 0.0, 1.0, epsilon=1.0)
        rt.Fleet(spec, path).close()
    else:
        path.touch()
    store = Store(path, create=False)
    migrate(store.engine)
    migrate(store.engine)  # nothing is left to do
    with store.engine.connect() as connection:
        options = {"version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, both(store)) == []
    store.close()


def test_a_store_of_a_later_version_is_refused(tmp_path):
    store = Store(tmp_path / "s.db")
    migrate(store.engine)
    with store.engine.begin() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    with pytest.raises(ValueError, match="9999, which this program does not know"):
        migrate(store.engine)
    store.close()


def test_an_old_copy_of_the_store_is_refused_and_can_be_retired(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    with inside(here) as (client, _):
        make(client)
        make(client, id="quiet")
        for i in range(5):
            post(client, "/v1/learners/p95/rounds", chunk(i), f"b{i}")
    shutil.copy(here / "service.db", there / "backup.db")
    with inside(here) as (client, _):
        post(client, "/v1/learners/p95/rounds", chunk(5), "b5")
        shown = client.get("/v1/learners/p95/decision").json()
    for old in here.glob("service.db*"):
        if old.is_file():
            old.unlink()
    shutil.copy(there / "backup.db", here / "service.db")  # the guard beside it is not part of the copy
    with inside(here) as (client, _):
        told = problem(post(client, "/v1/learners/p95/rounds", chunk(6), "b6"), "old-copy", 409)
        assert "commit 5" in told
        assert "commit 6" in told
        assert post(client, "/v1/learners/quiet/rounds", chunk(0), "q").status_code == 200  # it is where it was
        assert client.post("/v1/learners/p95/retire").status_code == 200
        problem(post(client, "/v1/learners/p95/rounds", chunk(6), "b6"), "retired", 410)
        assert shown["version"] >= client.get("/v1/learners/p95/decision").json()["version"]


def test_two_servers_on_one_store_cannot_both_write(tmp_path):
    with inside(tmp_path) as (client, _):
        make(client)
        post(client, "/v1/learners/p95/rounds", chunk(0), "a")
        key = client.headers["authorization"].partition(" ")[2]
        with Process(tmp_path, key=key) as other, other.client() as second:
            refused = post(second, "/v1/learners/p95/rounds", chunk(1), "b")
            problem(refused, "held-elsewhere", 503)
            assert refused.headers["retry-after"] == "1"
            # Reading is for both, and the second sees what the first has committed.
            for i in range(1, 8):
                post(client, "/v1/learners/p95/rounds", chunk(i), f"c{i}")
            first = client.get("/v1/learners/p95/decision")
            assert second.get("/v1/learners/p95/decision").json() == first.json()
            etag = {"If-None-Match": '"0-00000000"'}
            assert second.get("/v1/learners/p95/decision?wait=20", headers=etag).json() == first.json()
            # A stale writer: another has taken the fleet over, so nothing of ours is committed.
            with rt.Fleet.open(str(tmp_path / "service.db"), "p95", take_over=True) as taken:
                problem(post(client, "/v1/learners/p95/rounds", chunk(8), "d"), "held-elsewhere", 503)
                assert int(taken.rounds([0])[0]) == 800
            # Handed back, the first that is asked becomes the writer, and the request that failed counts once.
            with Client(other.url, key) as patient:
                assert patient.learner("p95").observe(again="d", **chunk(8)["columns"]).rounds == 100
            problem(post(client, "/v1/learners/p95/rounds", chunk(9), "e"), "held-elsewhere", 503)


def test_a_store_that_does_not_answer_is_a_problem_and_nothing_is_lost(tmp_path):
    with inside(tmp_path) as (client, hub):
        make(client)
        post(client, "/v1/learners/p95/rounds", chunk(0), "a")
        engine = hub.store.engine
        begin = engine.pool._creator

        def gone(*_):
            raise sqlite3.OperationalError("the disk is away")

        engine.pool._creator = gone
        engine.dispose()
        engine.pool._creator = gone
        try:
            answer = post(client, "/v1/learners/p95/rounds", chunk(1), "b")
        finally:
            engine.pool._creator = begin
        told = problem(answer, "store", 503)
        assert "disk" not in told
        assert post(client, "/v1/learners/p95/rounds", chunk(1), "b").json()["rounds"] == 100
        for i in range(2, 30):
            post(client, "/v1/learners/p95/rounds", chunk(i), f"c{i}")
        alone = Spec.from_json(QUANTILE).new(hub._held["p95"]._fleet.seed_of(0))
        alone.update_many(VALUES)
        assert client.get("/v1/learners/p95/decision").json()["decision"] == alone.decision
