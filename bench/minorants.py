"""Solves the tables of quartic minorants again, by linear programming, and writes them beside `gibbs/_quartic.py`.

python bench/minorants.py      # for developers; nothing rests on the file being right, draws only take longer
"""

from __future__ import annotations

import json
from pathlib import Path

from reticent.gibbs import _quartic

if __name__ == "__main__":
    tables = [[_quartic.best_minorant(rho, weight).tolist() for rho in _quartic.EDGES] for weight in _quartic.WEIGHTS]
    Path(_quartic.__file__).with_name("minorants.json").write_text(json.dumps(tables, indent=1) + "\n")
