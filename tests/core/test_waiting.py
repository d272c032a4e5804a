"""What is said while kernels are compiled: one line, of long ones only, where someone sees it."""

import io
import time
from types import SimpleNamespace

import pytest

from reticent._core import _waiting
from reticent._core._waiting import hushed, last_times, shown, told


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def screen(tmp_path, monkeypatch):
    """A terminal, and a cache folder of its own; what takes more than a moment is long."""
    terminal = Terminal()
    monkeypatch.setattr(_waiting, "_TIMES", tmp_path / "kernels.json")
    monkeypatch.setattr(_waiting, "PATIENCE", 0.05)
    # By name, as pytest puts its own standard error in place before each test.
    monkeypatch.setattr(_waiting, "sys", SimpleNamespace(stderr=terminal, modules={}))
    monkeypatch.delenv("RETICENT_COMPILING", raising=False)
    return terminal


def compile_for(seconds, name="pcomw.play_rows"):
    with told(name):
        time.sleep(seconds)


def compile_until_told(screen, name="pcomw.play_rows"):
    """Take so long that something is said, on a busy machine too; give up after half a minute."""
    lines = len(screen.getvalue().splitlines())
    with told(name):
        for _ in range(3000):
            if len(screen.getvalue().splitlines()) > lines:
                break
            time.sleep(0.01)


def test_a_long_one_is_told_with_what_it_took_last_time(screen):
    compile_until_told(screen)
    assert screen.getvalue() == (
        "reticent: compiling pcomw.play_rows, for the first time here; kept for later runs (`reticent warm` does all "
        "at once)\n"
    )
    assert last_times()["pcomw.play_rows"] > 0
    _waiting._TIMES.write_text('{"pcomw.play_rows": 12.3}')
    compile_until_told(screen)
    assert "which took 12 s last time" in screen.getvalue().splitlines()[1]


def test_a_short_one_is_not_told(screen, monkeypatch):
    monkeypatch.setattr(_waiting, "PATIENCE", 60.0)
    compile_for(0.0)
    assert screen.getvalue() == ""
    assert last_times() == {}


@pytest.mark.parametrize("case", ["hide", "hushed", "file"])
def test_nobody_is_told_who_does_not_want_to_or_cannot_see(screen, monkeypatch, case):
    if case == "hide":
        monkeypatch.setenv("RETICENT_COMPILING", "hide")
    if case == "file":
        screen.isatty = lambda: False
    if case == "hushed":
        with hushed():
            compile_for(0.2)
    else:
        compile_for(0.2)
    assert screen.getvalue() == ""
    assert last_times()["pcomw.play_rows"] >= 0.2


def test_the_setting_counts_for_more_than_the_terminal_and_has_two_values(screen, monkeypatch):
    screen.isatty = lambda: False
    assert not shown()
    monkeypatch.setenv("RETICENT_COMPILING", "show")
    assert shown()
    monkeypatch.setenv("RETICENT_COMPILING", "yes")
    with pytest.raises(ValueError, match="RETICENT_COMPILING must be 'show' or 'hide', or not be set, got 'yes'"):
        shown()


@pytest.mark.parametrize("text", ["", "[1]", "{", '{"a": "b"}'])
def test_a_spoilt_file_of_times_says_nothing(screen, text):
    _waiting._TIMES.write_text(text)
    assert last_times() == {}
    compile_until_told(screen)
    assert "for the first time here" in screen.getvalue()
