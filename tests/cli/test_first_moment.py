"""Ctrl-C while Python still loads the package: no word, exit code 130; where it is ignored, it stays so."""

import subprocess
import sys

# Somebody presses Ctrl-C in the middle of an import: of the package, of numpy, or of the last thing that is loaded.
PRESSED = """
import signal, sys
signal.signal(signal.SIGINT, {handler})

class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Pressed())
sys.argv = ["reticent", "--version"]
from reticent_command import main
sys.exit(main())
"""


def run(name, handler="signal.default_int_handler"):
    code = PRESSED.format(name=name, handler=handler)
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)


def test_an_interrupt_while_loading_is_quiet():
    for name in ("reticent", "reticent.cli._app"):
        done = run(name)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_an_interrupt_that_is_ignored_stays_ignored():
    done = run("reticent", "signal.SIG_IGN")
    assert done.returncode == 0
    assert done.stdout.startswith("reticent ")
