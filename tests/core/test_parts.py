"""Kernels inside kernels are compiled once, and to the same bits as by numba's own way."""

import os
import subprocess
import sys

import pytest

NORMALS = """
import numpy as np
from numba.core import event
from reticent._core._fine import normals

class Count(event.Listener):
    names = []
    def on_start(self, event):
        self.names.append(event.data["dispatcher"].py_func.__qualname__)
    def on_end(self, event):
        pass

event.register("numba:compile", Count())
drawn = normals(np.random.default_rng(5), 20_000)
assert abs(drawn).max() < 5.5
print(drawn.tobytes().hex()[:4000], ",".join(Count.names))
"""
REFUSED = """
import numpy as np
from reticent._core._kernel import kernel
from reticent.domains import _linalg

try:
    _linalg.inverse_cholesky(np.full((2, 2), -1.0))
except ValueError as error:
    print(error)
"""
TWOFOLD = """
import numpy as np
from reticent._core._kernel import kernel

@kernel
def pair(x):
    return np.full(2, x)

@kernel
def total(x):
    return pair(x).sum()
"""


@pytest.fixture
def run(tmp_path):
    def run(code, folder, **settings):
        env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / folder)} | settings
        return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env).stdout

    return run


def test_parts_are_compiled_once_and_to_the_same_bits_as_by_numba_itself(run):
    drawn, names = run(NORMALS, "parts").split()
    plain, plain_names = run(NORMALS, "plain", RETICENT_PARTS="0").split()
    assert drawn == plain
    own = [name for name in names.split(",") if name in ("normals", "standard_normal", "_far_beyond", "fine")]
    # As a part each of them once, and one of them as what Python calls.
    assert sorted(own) == ["_far_beyond", "normals", "normals", "standard_normal"]
    assert plain_names.split(",").count("normals") == 1
    # The second process finds all of it on disk.
    again, *compiled = run(NORMALS, "parts").split()
    assert again == drawn
    assert not compiled


def test_a_refusal_inside_a_kernel_says_why_compiled_or_loaded(run):
    wanted = "the precision matrix is not positive definite\n"
    assert run(REFUSED, "refused") == wanted
    assert run(REFUSED, "refused") == wanted


def test_a_kernel_may_be_a_part_of_one_and_be_called_itself_compiled_or_loaded(run, tmp_path):
    (tmp_path / "twofold.py").write_text(TWOFOLD)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from twofold import pair, total; "
    code += "print(total(1.0), pair(2.0))"
    # To make an array the way into a kernel needs its type, of which the same kernel as a part knows nothing.
    assert run(code, "both") == "2.0 [2. 2.]\n"
    assert run(code, "both") == "2.0 [2. 2.]\n"
