"""Ctrl-C, once or twice, cuts no block in two: what is told, written and kept is of the same rounds."""

import json
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from reticent.cli import main
from reticent.cli._interrupts import Interrupts
from reticent.cli._run_report import Decisions
from reticent.lab import Study
from reticent.lab.files import ahead


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y\n" + "".join(f"{y!r}\n" for y in np.random.default_rng(0).uniform(0, 1, 300).tolist()))
    return path


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_waits_for_the_end_of_a_block(times, data, tmp_path, capsys, monkeypatch):
    add, blocks = Decisions.add, []

    def interrupted(self, trace):
        blocks.append(trace.rounds)
        if len(blocks) == 3:  # the first round is by itself, then what is left of its block
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        add(self, trace)

    monkeypatch.setattr(Decisions, "add", interrupted)
    words = ["--target", "y", "--bounds", "y=0:1", "--loss", "absolute", "--max-switches", "250", "--block", "50"]
    kept = tmp_path / "kept.json"
    assert main(["run", str(data), *words, "--json", "--quiet", "--save", str(kept)]) == 130
    *lines, last = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    found, run = last["summary"], Study.load(kept).runs[0]
    assert found["ended"] == "interrupted"
    assert found["rounds"] == run.rounds == 100
    assert found["switches"] == run.switches == len(lines) - 1
    assert found["not_private"]["mean_loss"] == pytest.approx(run.total / 100)
    assert "interrupted after 100 rounds" in Study.load(kept).notes
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_does_not_leave_a_thread_behind():
    interrupts, ended = Interrupts(), []
    main_thread = threading.main_thread().ident

    def items():
        for times in (1, 2):  # while the main thread waits for an item; then while it waits for the end of this one
            signal.pthread_kill(main_thread, signal.SIGINT)
            for _ in range(60_000):  # a minute: an interrupt that is never heard must not hang the whole suite
                if interrupts._times >= times:
                    break
                threading.Event().wait(0.001)
        ended.append("in peace")
        yield 1

    before = threading.active_count()
    with interrupts.heard():
        with pytest.raises(KeyboardInterrupt), interrupts.waiting():
            next(ahead(items()))
        assert ended == ["in peace"]
        assert threading.active_count() == before


def test_a_third_interrupt_ends_the_process():
    code = (
        "import signal; from reticent.cli._interrupts import Interrupts\n"
        "with Interrupts().heard():\n"
        "    for k in range(3): print(k, flush=True); signal.raise_signal(signal.SIGINT)\n"
        "    print('never')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "0\n1\n2\n", "")
