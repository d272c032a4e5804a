"""A PostgreSQL server of its own, for this machine only; tests that need one are skipped where it cannot be had."""

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

import reticent as rt

PORT = 5432  # only a part of the name of a socket
DRIVERS = [name for name in ("psycopg", "pg8000", "psycopg2") if find_spec(name)]


def program(name):
    """Return the path of a program of PostgreSQL: Debian keeps them by version."""
    found = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(found[-1]) if found else shutil.which(name)


def running():
    """Yield the URL of a server in a new folder, which ends afterwards."""
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
