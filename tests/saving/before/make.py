"""Writes `states.zip` and `journals.zip` with the reticent at hand: run once, at the commit whose files are to be kept.

PYTHONPATH=src:tests/systems:tests/systems/cases:tests/journal:tests/saving python tests/saving/before/make.py FOLDER
"""

import sys
import tempfile
import zipfile
from pathlib import Path

import reticent as rt


def main(folder):
    from test_before import JOURNALS, STATES

    folder.mkdir(parents=True, exist_ok=True)
    here = Path(tempfile.mkdtemp())
    with zipfile.ZipFile(folder / "states.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as kept:
        for name, run in STATES.items():
            learner = run.new()
            learner.observe_many(*run.head)
            learner.save(here / "state")
            kept.write(here / "state", name)
    with zipfile.ZipFile(folder / "journals.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as kept:
        for name, run in JOURNALS.items():
            with rt.Journal(here / name, checkpoint=10**9) as journal:
                journal.start(run.plan, run.loss, seed=7).observe_many(*run.head)
            with rt.Journal(here / name, checkpoint=10**9) as journal:
                journal.resume().observe(*(part[0] for part in run.tail))
            kept.write(here / name, name)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
