"""The same ledger in PostgreSQL, started here from what the machine has; skipped where there is none."""

import pytest
from postgres import running
from test_ledger import at_once, killed

import reticent as rt
from reticent.privacy import Cost
from reticent.saving import _database


@pytest.fixture(scope="module")
def server():
    """A server of its own in a new folder, for this machine only."""
    yield from running()


def test_entries_and_the_chain(server):
    ledger = rt.Ledger(server)
    ledger.add("postgres", 1.0, 1e-6)
    ledger.spend("postgres", Cost(mu=0.1))
    with pytest.raises(ValueError, match="refuses"):
        ledger.spend("postgres", Cost(mu=0.5))
    assert ledger.standing("postgres").entries == 1
    last, head = ledger.verify()
    assert rt.Ledger(server, create=False).verify(head) == (last, head)
    assert "tester" in repr(ledger)


@pytest.mark.slow
def test_kills_and_two_writers(server):
    assert killed(server, 4, 3, 40) >= 2


# Attacks on what only a server has.


def test_many_threads_spend_a_budget_once(server):
    rt.Ledger(server).add("threads", 9.0, 1e-30)
    admitted, refused = [], []

    def spend():
        ledger = rt.Ledger(server)
        for _ in range(3):
            try:
                admitted.append(ledger.spend("threads", Cost(epsilon=1.0)).number)
            except ValueError as error:
                refused.append(str(error))

    at_once(spend, 6)
    assert (len(admitted), len(refused)) == (9, 9)
    assert all("refuses" in told for told in refused)
    rt.Ledger(server).verify()


def test_an_entry_is_on_disk_though_the_server_would_not_wait_for_it(server):
    ledger = rt.Ledger(server)
    with ledger._store.writing() as writer:
        asked = "SELECT current_setting('synchronous_commit'), current_setting('transaction_isolation')"
        assert tuple(writer._connection.exec_driver_sql(asked).one()) == ("on", "read committed")


def test_a_lost_connection_enters_nothing_and_says_so(server):
    ledger = rt.Ledger(server)
    ledger.add("lost", 1.0, 1e-6)
    before = ledger.verify()
    end_all = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND usename = 'tester'"
    )

    def lose():
        with ledger._store.writing() as writer:
            writer.append({"kind": "spend", "population": "lost", "time": "2100-01-01T00:00:00+00:00"})
            with ledger._store._engine.connect() as other:
                other.exec_driver_sql(end_all)

    with pytest.raises(OSError, match="no entry was made for certain, so release nothing"):
        lose()
    assert rt.Ledger(server).verify() == before
    ledger.spend("lost", Cost(epsilon=0.5))


def test_a_writer_that_stands_still_holds_others_for_a_while_only(server, monkeypatch):
    ledger = rt.Ledger(server)
    ledger.add("held", 1.0, 1e-6)
    monkeypatch.setattr(_database, "NOT_FOR_EVER", "SET LOCAL lock_timeout = '300ms'")
    with ledger._store.writing(), pytest.raises(OSError, match="release nothing"):
        rt.Ledger(server).spend("held", Cost(epsilon=0.5))
    ledger.spend("held", Cost(epsilon=0.5))


@pytest.mark.parametrize("name", ["x'; DROP TABLE reticent_ledger; --", "%s :a", "población"])
def test_names_are_only_names(server, name):
    ledger = rt.Ledger(server)
    ledger.add(name, 1.0, 1e-6)
    ledger.spend(name, Cost(epsilon=0.5), note=name)
    assert [entry.note for entry in ledger.entries(name)] == [name]
    ledger.verify()
