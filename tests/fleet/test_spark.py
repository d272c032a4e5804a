"""Fleets behind Spark: batches that are delivered again count once; with Spark itself where there is one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fleets import SPECS

import reticent as rt
from reticent.fleet import for_each_batch

MEAN = SPECS["mean"]
SPARK = os.environ.get("RETICENT_SPARK_PYTHON", sys.executable)  # one with pyspark, which asks for an older pandas


class Rows:
    """What the function uses of a DataFrame."""

    def __init__(self, rows):
        self.rows = rows

    def orderBy(self, name):
        return Rows(sorted(self.rows, key=lambda row: row[name]))

    def select(self, *names):
        self.names = names
        return self

    def collect(self):
        return [tuple(row[name] for name in self.names) for row in self.rows]


def test_batches_that_come_again_and_in_another_order_count_once(tmp_path):
    rng = np.random.default_rng(0)
    rows = [{"shop": f"s{i % 3}", "minutes": float(rng.exponential(5.0)), "at": i} for i in range(240)]
    other = rt.Fleet(MEAN, seed=2)
    other.observe([row["shop"] for row in rows], np.array([row["minutes"] for row in rows]))
    with rt.Fleet(MEAN, tmp_path / "fleet.db", seed=2) as fleet:
        take = for_each_batch(fleet, "q", key="shop", columns=["minutes"], order="at")
        take(Rows([]), 0)
        for number in range(6):
            part = rows[40 * number : 40 * number + 40]
            take(Rows([part[i] for i in rng.permutation(40)]), number + 1)
            take(Rows([part[i] for i in rng.permutation(40)]), number + 1)
        shops = ["s0", "s1", "s2"]
        assert fleet.decisions(shops).tobytes() == other.decisions(shops).tobytes()
        assert fleet.versions(shops).tolist() == other.versions(shops).tolist()
        assert fleet.offset("q") == 6


def test_features_of_several_columns_and_wrong_names():
    spec = SPECS["filtered, ball"]
    fleet = rt.Fleet(spec, seed=2)
    rows = [{"k": 1, "x": [1.0, 0.0, 2.0], "y": 1.0}, {"k": 2, "x": [0.5, 0.0, 0.0], "y": -1.0}]
    for_each_batch(fleet, "q", key="k", columns=["x", "y"])(Rows(rows), 0)
    assert fleet.rounds([1, 2]).tolist() == [1, 1]
    with pytest.raises(ValueError, match="one column for each of"):
        for_each_batch(fleet, "q", key="k", columns="y")
    with pytest.raises(ValueError, match="batch must be a text"):
        for_each_batch(fleet, "", key="k", columns=["x", "y"])


@pytest.mark.slow
def test_with_spark_itself(tmp_path):
    """The query dies after the commit to the store, and before Spark notes it: Spark delivers the batch again."""
    if subprocess.run([SPARK, "-c", "import pyspark, numba"], capture_output=True).returncode:
        pytest.skip("pyspark is not installed; name a Python that has it in RETICENT_SPARK_PYTHON")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    script = Path(__file__).with_name("sparkling.py")
    done = subprocess.run([SPARK, script, tmp_path], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["redelivered", "2", "same", "True"]
