"""The same ledger in PostgreSQL, started here from what the machine has; skipped where there is none."""

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_ledger import at_once, killed

import reticent as rt
from reticent.ledger import _store
from reticent.privacy import Cost

PORT = 5432  # only a part of the name of a socket
DRIVERS = [name for name in ("psycopg", "pg8000", "psycopg2") if find_spec(name)]


def program(name):
    """Return the path of a program of PostgreSQL: Debian keeps them by version."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


@pytest.fixture(scope="module")
def server():
    """A server of its own in a new folder, for this machine only."""
    initdb, postgres = program("initdb"), program("postgres")
    if not initdb or not postgres:
        pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")
    if not DRIVERS:
        pytest.skip("no driver for PostgreSQL is installed (pip install pg8000, or psycopg)")
    # Under /tmp itself: the path of a socket has at most 107 letters.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True, dir="/tmp") as folder:
        yield from served(Path(folder), initdb, postgres)


def served(folder, initdb, postgres):
    as_user = {}
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        try:
            user = pwd.getpwnam("postgres")
        except KeyError:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        shutil.chown(folder, "postgres")
        as_user = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **as_user}
    data, socket = folder / "data", folder / f".s.PGSQL.{PORT}"
    words = [initdb, "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync"]
    made = subprocess.run(words, check=False, timeout=120, **quiet)
    if made.returncode:
        pytest.skip(f"initdb failed with code {made.returncode}")
    # A socket in the folder, and no port that others could have or reach.
    options = ["-D", data, "-k", folder, "-p", PORT, "-c", "listen_addresses=", "-c", "fsync=off"]
    options += ["-c", "synchronous_commit=off", "-c", "default_transaction_isolation=serializable"]
    process = subprocess.Popen([postgres, *map(str, options)], **quiet)
    place = f"unix_sock={socket}" if DRIVERS[0] == "pg8000" else f"host={folder}&port={PORT}"
    url = f"postgresql+{DRIVERS[0]}://tester@/postgres?{place}"
    try:
        for _ in range(300):
            try:
                rt.Ledger(url)
                break
            except (ValueError, OSError):
                time.sleep(0.1)
        else:
            pytest.skip("PostgreSQL did not start within 30 seconds")
        yield url
    finally:
        # At once: after a plain SIGTERM PostgreSQL waits, for ever, until the last client is gone.
        process.send_signal(signal.SIGQUIT)
        process.wait(timeout=60)


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
    monkeypatch.setattr(_store, "_NOT_FOR_EVER", "SET LOCAL lock_timeout = '300ms'")
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
