"""A process killed at any moment loses nothing that was acknowledged, and goes on with the same decisions."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from journals import ROUNDS, check_told, heard, in_child, killed, run, work
from patient import patience

from reticent.journal._lock import Lock
from reticent.journal._store import Store

HERE = Path(__file__).parent

# Later Pythons warn of forks beside other threads, such as those of pytest-xdist.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def dying(owner, name, countdown, after):
    """Wrap a step of writing: the process is killed before, or after, it has been done so many times."""
    inner = getattr(owner, name)

    def step(self, *given):
        countdown[0] -= 1
        if countdown[0] == 0 and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        done = inner(self, *given)
        if countdown[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, step)


def killed_at(this, path, number, after=False, **options):
    def job(tell):
        countdown = [number]
        dying(Store, "_run", countdown, after)
        dying(Lock, "write", countdown, after)
        work(this, path, tell, **options)

    return heard(*in_child(job))


@pytest.mark.parametrize(("name", "options"), [("linear", {"batch": 9}), ("logistic", {"batch": 9, "prompt": True})])
def test_killed_at_every_step_of_writing(name, options, tmp_path):
    """Again and again on the same journal, each time one step later, until a child comes to its end."""
    this, path, acknowledged = run(name), tmp_path / "journal", 0
    for number in range(1, 10_000):
        told, status = killed_at(this, path, number, after=bool(number % 2), **options)
        if number == 1:
            assert killed(status)
        acknowledged = max(acknowledged, check_told(this, told))
        if not killed(status):
            assert status == 0
            break
        # A step of writing may be done without being told of; what was told of must be there.
        assert not told or told[0][0] <= told[-1][0]
    assert number > 20
    assert this.finish(path) == ROUNDS >= acknowledged


@pytest.mark.parametrize("name", ["linear", "absolute", "noisy"])
def test_killed_once_at_every_third_step(name, tmp_path):
    """Each time on a new journal."""
    this = run(name)
    for number in range(1, 60, 3):
        path = tmp_path / str(number)
        told, status = killed_at(this, path, number, batch=4)
        assert killed(status)
        assert this.finish(path) >= check_told(this, told)


def at_random_moments(wanted, tmp_path, seed):
    """Kill children until so many have died before their end, and look at every journal that they left."""
    chance = random.Random(seed)
    deaths = 0
    for time_number in range(10 * wanted):
        if deaths >= wanted:
            break
        this = run(chance.choice(["linear", "logistic", "absolute"]))
        path = tmp_path / str(time_number)
        options = {"batch": chance.choice([1, 4, 50]), "prompt": chance.random() < 0.5}
        acknowledged = 0
        for _ in range(3):
            child, reads = in_child(lambda tell, given=(this, path, options): work(*given[:2], tell, **given[2]))
            time.sleep(chance.random() ** 2 * 0.1)
            os.kill(child, signal.SIGKILL)
            told, status = heard(child, reads)
            deaths += killed(status)
            if told:
                assert told[0][0] >= acknowledged
            acknowledged = max(acknowledged, check_told(this, told))
        assert this.finish(path) >= acknowledged
    return deaths


def test_killed_at_20_random_moments(tmp_path):
    assert at_random_moments(20, tmp_path, seed=1) >= 20


@pytest.mark.slow
def test_killed_at_200_random_moments(tmp_path):
    assert at_random_moments(200, tmp_path, seed=2) >= 200


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    """A library that kills the process at a chosen write, sync, truncation or removal of a file, half done or not."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    made = tmp_path_factory.mktemp("shim") / "deadly.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", made, HERE / "deadly.c", "-ldl"], check=True, timeout=60)
    return made


def by_calls(shim, tmp_path, step, first=1):
    told = subprocess.run(
        [sys.executable, HERE / "by_calls.py", str(tmp_path), str(first), str(step)],
        env={**os.environ, "LD_PRELOAD": str(shim)},
        capture_output=True,
        text=True,
        timeout=500,
    )
    assert told.returncode == 0, told.stderr[-3000:]
    return json.loads(told.stdout)


def test_killed_at_system_calls(shim, tmp_path):
    found = by_calls(shim, tmp_path, step=11)
    assert found["calls"] > 100
    assert found["killed"] > 20


@pytest.mark.slow
def test_killed_at_every_system_call(shim, tmp_path):
    found = by_calls(shim, tmp_path, step=1)
    assert found["killed"] >= found["calls"] - 1


def test_the_lock_dies_with_its_process_though_a_fork_of_it_lives(tmp_path):
    """A child of the killed process must not keep the journal from being resumed."""
    this, path = run("linear"), tmp_path / "journal"

    def job(tell):
        import reticent as rt

        journal = rt.Journal(path)
        learner = this.start(journal)
        learner.observe(*this.row(0))
        alive, lives = os.pipe()
        grandchild = os.fork()
        if grandchild == 0:
            os.write(lives, b"!")
            time.sleep(30)
            os._exit(0)
        os.read(alive, 1)
        Path(tmp_path / "grandchild").write_text(str(grandchild))
        tell(learner)
        os.kill(os.getpid(), signal.SIGKILL)

    child, reads = in_child(job)
    with patience(child):
        os.waitpid(child, 0)
    grandchild = int((tmp_path / "grandchild").read_text())
    try:
        assert this.finish(path) == 1
    finally:
        os.close(reads)
        os.kill(grandchild, signal.SIGKILL)


def test_a_journal_that_only_pretends_to_write_is_found_out(tmp_path):
    """A control: were rounds acknowledged before they are on disk, these tests would notice."""
    this, path = run("linear"), tmp_path / "journal"

    def job(tell):
        honest, count = Store.append, [0]

        def append(self, records, state=None):
            count[0] += 1
            if count[0] < 9:
                return honest(self, records, state)
            self.head = self.head._replace(records=self.head.records + 1, rounds=[*records][-1].rounds)

        Store.append = append
        work(this, path, lambda learner: (tell(learner), learner.rounds > 30 and os.kill(os.getpid(), signal.SIGKILL)))

    told, status = heard(*in_child(job))
    assert killed(status)
    with pytest.raises(ValueError, match=r"acknowledged rounds .* are missing"):
        this.finish(path)
    os.unlink(f"{path}-lock")
    assert this.finish(path) < check_told(this, told)
