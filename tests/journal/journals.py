"""What tests of journals share: a run with many changes, and children that work on it until they are killed."""

import json
import os
import signal
from functools import cache

import numpy as np
from patient import patience

import reticent as rt

ROUNDS = 120
PLANS = {
    "linear": (lambda: rt.plan_lazy(rt.Ball(2), ROUNDS, 1.0, max_switches=40), rt.Linear()),
    "logistic": (lambda: rt.plan_private(rt.Ball(2), ROUNDS, 1.0, 3.0, 1e-5), rt.Logistic()),
    # A learner whose draws Python makes, one by one.
    "hinge": (lambda: rt.plan_lazy(rt.Ball(2), ROUNDS, 1.0, 40), rt.Hinge()),
    "absolute": (lambda: rt.planning.plan_ftrl(rt.Interval(-1.0, 1.0), ROUNDS, 1.0, 3.0, 1e-5), rt.Absolute()),
    # Without an end, and with one account for all rounds.
    "noisy": (lambda: rt.planning.plan_descent(rt.Ball(2), None, 1.0, epsilon=3.0, delta=1e-5), rt.Logistic()),
}


class Run:
    """One learner on one stream, and the decision after every number of rounds."""

    def __init__(self, name):
        self.name = name
        make, self.loss = PLANS[name]
        self.plan = make()
        rng = np.random.default_rng(5)
        rows = rng.normal(size=(ROUNDS, self.plan.domain.dim))
        rows /= 1.01 * np.linalg.norm(rows, axis=1)[:, None]
        self.data = (rows,) if name == "linear" else (rows, np.where(rng.random(ROUNDS) < 0.7, 1.0, -1.0))
        learner = rt.make(self.plan, self.loss, seed=3)
        self.decisions = [learner.decision]
        for i in range(ROUNDS):
            learner.observe(*self.row(i))
            self.decisions.append(learner.decision)
        self.switches = learner.switches
        self.spent = learner.spent() if self.plan.private else None

    def row(self, i):
        return tuple(part[i] for part in self.data)

    def block(self, start, stop):
        return tuple(part[start:stop] for part in self.data)

    def start(self, journal):
        return journal.open_or_start(self.plan, self.loss, seed=3)

    def check(self, learner):
        """The learner stands where the uninterrupted run stood."""
        assert np.array_equal(learner.decision, self.decisions[learner.rounds])

    def finish(self, path):
        """Resume, go on to the end, and compare everything with the uninterrupted run; return where it resumed."""
        from reticent.journal import Reader

        with rt.Journal(path) as journal:
            learner = self.start(journal)
            begin = learner.rounds
            self.check(learner)
            if begin < ROUNDS:
                learner.observe_many(*self.block(begin, ROUNDS))
            self.check(learner)
            assert learner.switches == self.switches
            if self.plan.private:
                assert learner.spent() == self.spent
        with Reader(path) as reader:
            assert reader.verify().rounds == ROUNDS
            assert reader.spent() == self.spent
            changes = list(reader.changes())
        for change, following in zip(changes, [*changes[1:], None], strict=True):
            end = ROUNDS if following is None else following.rounds - 1
            for i in (change.rounds, end):
                assert np.array_equal(change.point, self.decisions[i])
        return begin


@cache
def run(name):
    return Run(name)


def work(this, path, tell, batch=1, checkpoint=7, prompt=False):
    """Take a run from where it is to its end, and tell of every step; what a child does until it is killed."""
    with rt.Journal(path, batch=batch, checkpoint=checkpoint, prompt=prompt) as journal:
        learner = this.start(journal)
        tell(learner)
        while learner.rounds + learner.waiting < ROUNDS:
            i = learner.rounds + learner.waiting
            if i % 5 == 0:
                learner.observe_many(*this.block(i, min(i + 1 + i % 11, ROUNDS)))
            else:
                learner.observe(*this.row(i))
            tell(learner)


def in_child(job):
    """Run `job(tell)` in a fork of this process; return what it told, and how it ended."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reads)

            def tell(learner):
                words = f"{learner.rounds} {learner.waiting} {learner.decision.tobytes().hex()}\n"
                os.write(writes, words.encode())

            job(tell)
            code = 0
        finally:
            os._exit(code)
    os.close(writes)
    return child, reads


def heard(child, reads):
    """Wait for the end of a child; return what it told, and the signal or code that it ended with."""
    # A fork of a process with threads may find a lock held for ever.
    with patience(child), open(reads) as pipe:
        lines = [line.split() for line in pipe.read().split("\n")[:-1]]
        _, status = os.waitpid(child, 0)
    return [(int(a), int(b), bytes.fromhex(c)) for a, b, c in lines], status


def in_child_words(job):
    """Run `job()` in a fork of this process, which tells the texts that it returns."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reads)
            os.write(writes, json.dumps(job()).encode())
        finally:
            os._exit(0)
    os.close(writes)
    return child, reads


def heard_words(told):
    """Return the texts that such a child told."""
    child, reads = told
    with patience(child), open(reads) as pipe:
        words = pipe.read()
        os.waitpid(child, 0)
    return json.loads(words)


def check_told(this, told):
    """Everything that a child was shown rests on rounds on disk."""
    for rounds, _, point in told:
        assert np.array_equal(np.frombuffer(point), this.decisions[rounds])
    return max((rounds for rounds, _, _ in told), default=0)


def killed(status):
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
