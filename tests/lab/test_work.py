"""Work in pieces: parallel, kept, resumed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patient import patience

from reticent.lab import _kept, _work
from reticent.lab._work import run_all

TASKS = [{"x": x, "scale": 0.5} for x in range(6)]
RESULTS = [{"value": x * 0.5} for x in range(6)]


class Work:
    """Counts its calls, and may be told to fail."""

    def __init__(self, raises=None):
        self.__qualname__ = "work"
        self.calls = []
        self.raises = raises or {}

    def __call__(self, x, scale):
        self.calls.append(x)
        if x in self.raises:
            raise self.raises[x]
        return {"value": x * scale}


def test_results_are_in_the_order_of_the_tasks_and_reported_as_they_come():
    seen = {}
    assert run_all(Work(), TASKS, jobs=1, report=seen.__setitem__) == RESULTS
    assert seen == dict(enumerate(RESULTS))


def test_kept_results_are_not_made_again(tmp_path):
    run_all(Work(), TASKS[:4], jobs=1, cache=tmp_path)
    work, seen = Work(), {}
    assert run_all(work, TASKS, jobs=1, cache=tmp_path, report=seen.__setitem__) == RESULTS
    assert work.calls == [4, 5]
    assert len(seen) == 6


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, jobs):
    def stop(index, result):
        if len(list(tmp_path.glob("*.json"))) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(Work(), TASKS, jobs=jobs, backend="threading", cache=tmp_path, report=stop)
    work = Work()
    assert run_all(work, TASKS, jobs=1, cache=tmp_path) == RESULTS
    assert len(work.calls) == 3


def test_a_damaged_file_is_made_again(tmp_path):
    run_all(Work(), TASKS, jobs=1, cache=tmp_path)
    empty, torn, foreign, *_ = sorted(tmp_path.glob("*.json"))
    empty.write_text("")
    torn.write_text(torn.read_text()[:-9])
    foreign.write_text(json.dumps(["not", "ours"]))
    work = Work()
    assert run_all(work, TASKS, jobs=1, cache=tmp_path) == RESULTS
    assert len(work.calls) == 3


def test_changed_sources_make_results_old(tmp_path, monkeypatch):
    run_all(Work(), TASKS, jobs=1, cache=tmp_path)
    monkeypatch.setattr(_kept, "_digest", lambda home, sources: "another engine")
    work = Work()
    run_all(work, TASKS, jobs=1, cache=tmp_path)
    assert len(work.calls) == 6


def test_the_digest_follows_the_engine_and_the_file_of_the_work(tmp_path):
    home = tmp_path / "runner.py"
    home.write_text("one")
    before = _kept._digest.__wrapped__(str(home), ("systems",))
    assert before == _kept._digest.__wrapped__(str(home), ("systems",))
    assert before != _kept._digest.__wrapped__(str(home), ("systems", "_core/_check.py"))
    home.write_text("two")
    assert before != _kept._digest.__wrapped__(str(home), ("systems",))


def test_an_error_loses_no_other_result(tmp_path):
    work = Work({1: ValueError("no such x"), 3: ValueError("nor this")})
    with pytest.raises(ValueError, match="no such x") as caught:
        run_all(work, TASKS, jobs=1, cache=tmp_path)
    assert "2 of 6 tasks failed" in caught.value.__notes__[0]
    assert len(list(tmp_path.glob("*.json"))) == 4


def test_fresh_and_kept_results_are_alike(tmp_path):
    def pair(x):
        return (x, float(x))

    fresh = run_all(pair, [{"x": 1}], jobs=1, cache=tmp_path)
    assert fresh == run_all(pair, [{"x": 1}], jobs=1, cache=tmp_path) == [[1, 1.0]]


def test_a_result_that_json_cannot_hold_is_refused():
    def bad(x):
        return {x}

    with pytest.raises(ValueError, match="made of what JSON can hold"):
        run_all(bad, [{"x": 1}], jobs=1)


def test_unknown_backends_and_counts_are_refused():
    with pytest.raises(ValueError, match="backend must be one of loky, threading, dask, ray, got 'spark'"):
        run_all(Work(), TASKS, backend="spark")
    with pytest.raises(ValueError, match="jobs must be"):
        run_all(Work(), TASKS, jobs=0)
    with pytest.raises(ValueError, match="is for the backends dask and ray"):
        run_all(Work(), TASKS, jobs=2, scheduler="tcp://nowhere:1")


def half(x, scale):
    import os

    # What comes back must have been made elsewhere.
    return {"value": x * scale, "process": os.getpid()}


def away(backend, **options):
    """Run the tasks elsewhere; return the values and how many processes of others took part."""
    here = type(half)(half.__code__, {"__builtins__": __builtins__}, "half")  # travels by value: workers lack this file
    here.__module__, here.__qualname__ = "elsewhere", "away.<locals>.half"
    results = run_all(here, TASKS, backend=backend, **options)
    processes = {one.pop("process") for one in results}
    return results, len(processes - {os.getpid()})


def test_loky():
    results, others = away("loky", jobs=2)
    assert results == RESULTS
    assert others >= 1


# The clusters warn of sockets and files that they close late, and of each other's versions.
@pytest.mark.filterwarnings("ignore")
def test_a_local_dask_cluster_gives_the_same(tmp_path):
    pytest.importorskip("distributed")
    results, others = away("dask", jobs=2, cache=tmp_path)
    assert results == RESULTS
    assert others >= 1
    assert len(list(tmp_path.glob("*.json"))) == len(TASKS)


@pytest.mark.filterwarnings("ignore")
def test_a_local_ray_gives_the_same(tmp_path):
    pytest.importorskip("ray")
    results, others = away("ray", jobs=2, cache=tmp_path)
    assert results == RESULTS
    assert others >= 1
    assert len(list(tmp_path.glob("*.json"))) == len(TASKS)


@pytest.mark.filterwarnings("ignore")
def test_a_scheduler_that_is_not_there(monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(_work, "CONNECT", 1)
    with pytest.raises(ValueError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9"):
        run_all(Work(), TASKS, backend="dask", scheduler="tcp://127.0.0.1:9")


SLEEPER = """
import signal, sys, time
signal.alarm(120)  # so that no test waits for it longer
from pathlib import Path
from reticent.lab._work import run_all

def nap(x):
    time.sleep(0.0 if x < 3 else 60.0)
    return x

try:
    tasks = [{"x": x} for x in range(6)]
    run_all(nap, tasks, jobs=2, cache=Path(sys.argv[1]), report=lambda i, r: print(r, flush=True))
except KeyboardInterrupt:
    sys.exit(130)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_control_c_keeps_what_is_finished_and_ends_at_once(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", SLEEPER, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with patience(process.pid):
        for _ in range(3):
            process.stdout.readline()
    begin = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the workers too
    process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - begin < 20
    assert len(list(Path(tmp_path).glob("*.json"))) == 3


def test_an_edited_result_is_made_again(tmp_path):
    run_all(Work(), TASKS[:1], jobs=1, cache=tmp_path)
    (path,) = tmp_path.glob("*.json")
    document = json.loads(path.read_text())
    path.write_text(json.dumps(document | {"result": []}))
    work = Work()
    assert run_all(work, TASKS[:1], jobs=1, cache=tmp_path) == RESULTS[:1]
    assert work.calls == [0]
