"""Runs in a process with `deadly.c` loaded: kills children at system calls, and checks what is left each time."""

import ctypes
import json
import sys
from pathlib import Path

from journals import check_told, heard, in_child, killed, run, work


def main(folder, first, step):
    library = ctypes.CDLL(None)
    at, calls, half = (kind.in_dll(library, f"deadly_{name}") for kind, name in FIELDS)
    this, deaths, number, last = run("linear"), 0, first, 0
    while True:
        path = Path(folder) / f"journal{number}"

        def job(tell, path=path, number=number):
            calls.value, half.value, at.value = 0, number % 2, number
            work(this, path, tell, batch=6, checkpoint=20)
            (path.parent / "calls").write_text(str(calls.value))

        told, status = heard(*in_child(job))
        acknowledged = check_told(this, told)
        begin = this.finish(path)
        assert begin >= acknowledged, (number, begin, acknowledged)
        if not killed(status):
            assert status == 0, status
            last = int((path.parent / "calls").read_text())
            break
        deaths += 1
        number += step
    print(json.dumps({"killed": deaths, "calls": last}))


FIELDS = [(ctypes.c_long, "at"), (ctypes.c_long, "calls"), (ctypes.c_int, "half")]

if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
