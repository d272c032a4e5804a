"""Random sequences of rounds, blocks, saves, loads, crashes and resumes, against a learner that never stopped."""

import shutil
import tempfile
from pathlib import Path

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from journals import ROUNDS, run

import reticent as rt
from reticent.journal import Reader


class Life(RuleBasedStateMachine):
    """A journal beside the decisions of the uninterrupted run.

    The model is two numbers: how many rounds are on disk, and how many wait.
    """

    @initialize(name=st.sampled_from(["linear", "logistic", "absolute"]))
    def begin(self, name):
        self.this = run(name)
        self.folder = Path(tempfile.mkdtemp())
        self.journal = None
        self.disk = self.wait = 0
        self.open(1, False, 5)

    def open(self, batch, prompt, checkpoint):
        self.batch, self.prompt = batch, prompt
        self.journal = rt.Journal(self.folder / "journal", batch=batch, prompt=prompt, checkpoint=checkpoint)
        self.learner = self.this.start(self.journal)
        self.wait = 0

    @property
    def at(self):
        return self.disk + self.wait

    @precondition(lambda self: self.at < ROUNDS)
    @rule()
    def observe(self):
        self.learner.observe(*self.this.row(self.at))
        if self.prompt and self.learner.waiting == 0:
            self.disk, self.wait = self.at + 1, 0
            return
        self.wait += 1
        if self.wait >= self.batch:
            self.disk, self.wait = self.at, 0

    @precondition(lambda self: self.at < ROUNDS)
    @rule(size=st.integers(1, 20))
    def observe_many(self, size):
        stop = min(ROUNDS, self.at + size)
        trace = self.learner.observe_many(*self.this.block(self.at, stop))
        assert np.array_equal(trace.decisions(), np.array(self.this.decisions[self.at : stop]))
        self.disk, self.wait = stop, 0

    @precondition(lambda self: self.at < ROUNDS)
    @rule()
    def refused(self):
        bad, *rest = self.this.row(self.at)
        for use in (self.learner.observe, lambda row, *rest: self.learner.observe_many(row[None], *rest)):
            try:
                use(bad * np.nan, *rest)
                raise AssertionError("a round that is not a number was taken")
            except ValueError:
                pass
            if use is not self.learner.observe:
                self.disk, self.wait = self.at, 0

    @rule()
    def flush(self):
        self.learner.flush()
        self.disk, self.wait = self.at, 0

    @rule(size=st.integers(1, 20))
    def save_and_load(self, size):
        """Go on from a saved state for a while, beside the journal; it is thrown away then."""
        self.learner.save(self.folder / "state")
        self.disk, self.wait = self.at, 0
        other = rt.load(self.folder / "state")
        stop = min(ROUNDS, self.disk + size)
        if stop > self.disk:
            other.observe_many(*self.this.block(self.disk, stop))
        self.this.check(other)
        assert other.rounds == stop

    @rule(batch=st.sampled_from([1, 3, 10, 1000]), prompt=st.booleans(), checkpoint=st.sampled_from([1, 9, 10**6]))
    def crash_and_resume(self, batch, prompt, checkpoint):
        """What a crash leaves is what is in the files: copy them away from under the journal, and go on there."""
        left = Path(tempfile.mkdtemp())
        shutil.copytree(self.folder, left, dirs_exist_ok=True)
        self.learner._end("crash")
        self.journal.close()
        shutil.rmtree(self.folder)
        self.folder = left
        self.open(batch, prompt, checkpoint)

    @rule(batch=st.sampled_from([1, 4, 1000]), prompt=st.booleans())
    def close_and_resume(self, batch, prompt):
        self.journal.close()
        self.disk, self.wait = self.at, 0
        self.open(batch, prompt, 9)

    @rule()
    def read(self):
        with Reader(self.folder / "journal") as reader:
            assert reader.rounds == self.disk
            assert np.array_equal(list(reader.changes())[-1].point, self.this.decisions[self.disk])

    @invariant()
    def agrees(self):
        if getattr(self, "journal", None) is None:
            return
        assert self.learner.rounds == self.journal.acknowledged == self.disk
        assert self.learner.waiting == self.wait
        self.this.check(self.learner)

    def teardown(self):
        if getattr(self, "journal", None) is not None:
            self.journal.close()
            assert self.this.finish(self.folder / "journal") == self.at
            shutil.rmtree(self.folder)


TestLife = Life.TestCase
TestLife.settings = settings(max_examples=12, stateful_step_count=25, deadline=None)
