"""A fleet whose process is killed again and again while it takes in batches: python deadly.py URL KILLS SEED BATCHES.

Every batch that was acknowledged is told to a pipe, which outlives the writer, with a digest of all decisions then in
play. Prints how many were killed, and what was told.
"""

import hashlib
import os
import random
import signal
import sys
import time

import numpy as np
from fleets import SPECS, made_up

import reticent as rt

KEYS, ROWS, RESIDENT = 12, 60, 7
KINDS = ("filtered, interval", "mean", "descent")


def batch(kind, number):
    """Return the batch of a number: the same whenever it is delivered."""
    rng = np.random.default_rng([KINDS.index(kind), number])
    return rng.integers(0, KEYS, ROWS), made_up(SPECS[kind], ROWS, rng)


def digest(fleet):
    """Return what stands for all decisions in play, and all versions."""
    keys = np.arange(KEYS)
    said = fleet.decisions(keys).tobytes() + fleet.versions(keys).tobytes() + fleet.rounds(keys).tobytes()
    return hashlib.sha256(said).hexdigest()[:16]


def write(url, kind, batches, pipe):
    """Go on with what the store says was taken in, the last batch once more, as engines deliver it."""
    with rt.Fleet(SPECS[kind], url, name=kind, seed=5, resident=RESIDENT) as fleet:
        last = fleet.offset("stream")
        for number in range(0 if last is None else last, batches):
            keys, columns = batch(kind, number)
            receipt = fleet.observe(keys, *columns, batch=("stream", number))
            assert receipt.repeated == (last is not None and number <= last)
            os.write(pipe, f"{number} {digest(fleet)}\n".encode())
    os.write(pipe, b"done\n")


def forked(url, kind, batches):
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reads)
            write(url, kind, batches, writes)
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    return child, reads


def main(url, kills, seed, batches):
    """Kill writers at random moments until so many were, then let one finish, for every kind in turn."""
    chance, killed = random.Random(seed), 0
    for kind in KINDS:
        told, left = [], kills // len(KINDS)
        while True:
            child, reads = forked(url, kind, batches)
            if left:
                time.sleep(chance.uniform(0.0, 0.12))
                os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            with open(reads) as lines:
                heard = lines.read().splitlines()
            told += [line for line in heard if line != "done"]
            if heard and heard[-1] == "done":
                break
            assert os.WIFSIGNALED(status), f"the writer failed by itself with {status}"
            killed, left = killed + 1, left - 1
        for line in told:
            print(kind.replace(" ", "_"), line)
    print("killed", killed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
