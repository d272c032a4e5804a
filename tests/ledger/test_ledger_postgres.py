"""The same ledger in PostgreSQL, started here from what the machine has; skipped where there is none."""

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import pytest
from test_ledger import killed

import reticent as rt
from reticent.privacy import Cost

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
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
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
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **as_user}
    data = folder / "data"
    made = subprocess.run(
        [initdb, "-D", data, "-A", "trust", "-U", "tester", "-E", "UTF8", "--no-sync"],
        cwd=folder,
        check=False,
        timeout=300,
        **quiet,
    )
    if made.returncode:
        pytest.skip(f"initdb failed with code {made.returncode}")
    port = 20_000 + os.getpid() % 20_000
    options = ["-D", data, "-k", "", "-h", "127.0.0.1", "-p", str(port), "-c", "fsync=off"]
    process = subprocess.Popen([postgres, *map(str, options)], cwd=folder, **quiet)
    url = f"postgresql+{DRIVERS[0]}://tester@127.0.0.1:{port}/postgres"
    try:
        for _ in range(100):
            try:
                rt.Ledger(url)
                break
            except (ValueError, OSError):
                time.sleep(0.1)
        else:
            pytest.skip("PostgreSQL did not start within 10 seconds")
        yield url
    finally:
        process.terminate()
        process.wait(60)


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
