"""Two processes that spend from one ledger, killed again and again while they write: python writers.py URL KILLS SEED.

Prints what writers have heard to be entered: each tells a number to a pipe, which outlives it, before the next.
"""

import os
import random
import signal
import sys
import time

from reticent.ledger import Ledger
from reticent.privacy import Cost

ALIVE = 90  # seconds that a writer lives at most: no test waits for one that is stuck
EPSILON = 10.0  # so large that epsilons simply add up: composition has nothing to gain


def spend(url, pipe, who, pause):
    """Spend until refused; every entry is told to the pipe once `spend` has returned."""
    ledger = Ledger(url)
    while True:
        try:
            entry = ledger.spend("people", Cost(epsilon=EPSILON), note=who)
        except ValueError as error:
            if "refuses" not in str(error):
                raise
            os.write(pipe, b"refused\n")
            os._exit(0)
        os.write(pipe, f"{entry.number}\n".encode())
        time.sleep(pause)


def forked(url, who, pause):
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(ALIVE)
        os.close(reads)
        try:
            spend(url, writes, who, pause)
        finally:
            os._exit(1)
    os.close(writes)
    return child, reads


def heard(child, reads):
    with os.fdopen(reads) as file:
        found = file.read().split()
    _, status = os.waitpid(child, 0)
    return found, status


def main(url, kills, seed):
    rng = random.Random(seed)
    told, done, refused = [], 0, False
    while done < kills and not refused:
        pair = [forked(url, who, 0.01) for who in ("one", "two")]
        time.sleep(rng.uniform(0.02, 0.25))
        for child, _ in rng.sample(pair, 2):
            os.kill(child, signal.SIGKILL)
        for child, reads in pair:
            found, status = heard(child, reads)
            assert not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM), "a writer was stuck"
            done += os.WIFSIGNALED(status)
            refused = refused or "refused" in found
            assert os.WIFSIGNALED(status) or "refused" in found, "a writer failed by itself"
            told += [word for word in found if word != "refused"]
    # At last both go on undisturbed until nothing is left.
    for child, reads in [forked(url, who, 0.0) for who in ("one", "two")]:
        found, status = heard(child, reads)
        assert found[-1:] == ["refused"], f"a writer ended with status {status} before it was refused"
        told += found[:-1]
    print(done, *told)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
