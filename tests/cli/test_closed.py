"""Readers that leave, full disks and deaf terminals: nothing finished is lost, and the exit code says what happened."""

import io
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from reticent.cli import main
from reticent.lab import Study

RUN = ["--target", "y", "--bounds", "y=0:1", "--loss", "absolute", "--max-switches", "250", "--block", "50"]
full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("y\n" + "".join(f"{y!r}\n" for y in np.random.default_rng(0).uniform(0, 1, 300).tolist()))
    return path


class Reader(io.StringIO):
    """Leaves after some flushes."""

    def __init__(self, patience):
        super().__init__()
        self.patience = patience

    def flush(self):
        self.patience -= 1
        if self.patience < 0:
            raise BrokenPipeError(32, "Broken pipe")


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_run_without_a_reader_keeps_what_it_did(form, data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", Reader(3))  # the first decision and two blocks
    kept = tmp_path / "kept.json"
    assert main(["run", str(data), *RUN, *form, "--save", str(kept)]) == 141
    err = capsys.readouterr().err
    assert "rounds              150 of" in err
    assert "whoever read the output has gone" in err
    assert Study.load(kept).runs[0].rounds == 150
    assert "stopped after 150 rounds: standard output: broken pipe" in Study.load(kept).notes


def test_a_reader_that_leaves_before_the_summary_loses_nothing_else(data, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stdout", Reader(0))
    kept, out = tmp_path / "kept.json", tmp_path / "out.csv"
    assert main(["run", str(data), *RUN, "--json", "--save", str(kept), "--out", str(out)]) == 141
    assert Study.load(kept).runs[0].rounds == 300
    assert "rounds              300 of" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [["--help"], ["plan", "--domain", "ball:2", "--horizon", "9", "--all"], ["streams"]], ids=" ".join
)
def test_a_closed_pipe_has_one_exit_code(words):
    line = f"{sys.executable} -m reticent.cli {' '.join(words)} | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (141, "")


@full
def test_a_full_disk_is_named_and_stops_the_run_in_order(data, capsys):
    assert main(["run", str(data), *RUN, "--out", "/dev/full"]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == "error: /dev/full: no space left on device"


@full
def test_standard_output_on_a_full_disk_is_named(monkeypatch, capsys):
    with open("/dev/full", "w") as nowhere:
        monkeypatch.setattr(sys, "stdout", nowhere)
        assert main(["streams"]) == 2
        assert capsys.readouterr().err == "error: standard output: no space left on device\n"


@full
def test_remarks_that_nobody_can_hear_do_not_end_a_run(data, monkeypatch, capsys):
    with open("/dev/full", "w") as nowhere:
        monkeypatch.setattr(sys, "stderr", nowhere)
        assert main(["run", str(data), *RUN]) == 0
        assert main(["run", "none.csv", *RUN]) == 2
    assert len(capsys.readouterr().out.splitlines()) > 10


def test_a_draft_is_not_what_an_error_names(tmp_path):
    from reticent.lab._kept import write_whole

    target = tmp_path / ("x" * 250)  # a name that fits; that of the draft does not
    with pytest.raises(OSError, match="File name too long") as caught:
        write_whole(target, "text")
    assert caught.value.filename == str(target)
