"""Files of earlier versions load, and go on as the run would have gone on: `before/` holds those of version 1."""

import zipfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import journals
import numpy as np
import pytest
from contract_rows import first_rows
from test_contract import ALL, data_of, plan_of

import reticent as rt
from reticent._core import _tags
from reticent.journal import Reader
from reticent.saving._old import OLD_NAMES
from reticent.systems._grid import largest_step

BEFORE = Path(__file__).parent / "before"


@dataclass
class Run:
    """A learner with seed 7 on some rounds, of which the first `cut` are behind it in the file."""

    make: object
    loss: object
    cut: int
    rounds: object

    @cached_property
    def plan(self):
        return self.make()

    @cached_property
    def data(self):
        return self.rounds(self.plan)

    @property
    def head(self):
        return tuple(part[: self.cut] for part in self.data)

    @property
    def tail(self):
        return tuple(part[self.cut :] for part in self.data)

    @property
    def given(self):
        return self.loss if isinstance(self.loss, rt.Custom) else None


def case(one):
    return Run(lambda: plan_of(one), one.loss, 60, lambda _: first_rows(data_of(one, "drifting"), 0, 150))


def made_up(make, loss, cut, count):
    def rounds(plan):
        rng = np.random.default_rng(5)
        rows = rng.normal(size=(count, plan.domain.dim))
        rows /= 1.01 * np.linalg.norm(rows, axis=1)[:, None]
        return (rows,) if isinstance(loss, rt.Linear) else (rows, np.where(rng.random(count) < 0.7, 1.0, -1.0))

    return Run(make, loss, cut, rounds)


def by_hand(domain, horizon, **more):
    return rt.Plan(domain, horizon, 1.0, beta=0.1, lam=30.0, p=0.05, phi=1.2, **more)


BALL = rt.Ball(2)
EPOCHS = {
    "epochs-private": made_up(lambda: rt.plan_private(BALL, None, 1.0, 3.0, 1e-5), rt.Linear(), 1224, 1424),
    "epochs-private-logistic": made_up(
        lambda: rt.plan_private(BALL, None, 1.0, 3.0, 1e-5, neighbors="zero-out"), rt.Logistic(), 1224, 1424
    ),
    "epochs-lazy": made_up(lambda: rt.plan_lazy(BALL, None, 1.0, 60), rt.Linear(), 1224, 1424),
    "epochs-theorem": made_up(lambda: rt.theorem_lazy(BALL, None, 1.0, 60), rt.Linear(), 1224, 1424),
    "epochs-by-hand": made_up(lambda: by_hand(rt.Interval(-1.0, 1.0), None, first_epoch=32), rt.Absolute(), 232, 432),
    "constant-work": made_up(lambda: by_hand(BALL, 400, constant_work=True), rt.Logistic(), 100, 300),
}
# Goals whose later epochs are planned by today's planner, so that a run cannot be repeated from its start.
REPLANNED = {"epochs-lazy", "epochs-private-logistic"}
STATES = {one.name: case(one) for one in ALL} | EPOCHS
JOURNALS = {
    name: made_up(make, loss, journals.ROUNDS // 2, journals.ROUNDS) for name, (make, loss) in journals.PLANS.items()
} | {name: EPOCHS[name] for name in ("epochs-private", "epochs-by-hand")}


def straight(run, plan):
    """The decisions of an uninterrupted run from the place of the file on, by the plan of the file."""
    learner = rt.make(plan, run.loss, seed=7)
    learner.observe_many(*run.head)
    return learner, learner.observe_many(*run.tail).decisions()


def is_the_goal_of(run, plan):
    """Whether a plan of the file is for the same goal as today's, which may have better parameters for it."""
    names = ("system", "domain", "horizon", "lipschitz", "epsilon", "delta", "neighbors")
    return all(getattr(plan, name) == getattr(run.plan, name) for name in names)


def assert_same_decisions(found, wanted, plan):
    """To rounding, as other machines may add up in another order; on the grid of private plans, a few steps of it.

    Gradients are read at released decisions, which were no points of a grid before: sums of gradients differ by some
    thousandths of a step for each round.
    """
    step = 4 * largest_step(plan.domain) if plan.private else 0.0
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 + step)


def kept(archive):
    with zipfile.ZipFile(BEFORE / archive) as files:
        return files.namelist()


# Cases may come after the files were written; none that was written may go.
@pytest.mark.parametrize("name", kept("states.zip"))
def test_states_load_and_go_on(name, tmp_path):
    run = STATES[name]
    with zipfile.ZipFile(BEFORE / "states.zip") as files:
        (tmp_path / "state").write_bytes(files.read(name))
    learner = rt.load(tmp_path / "state", loss=run.given)
    assert is_the_goal_of(run, learner.plan)
    assert learner.rounds == run.cut
    if name in REPLANNED:
        assert learner.observe_many(*run.tail).decisions().shape == (len(run.tail[0]), run.plan.domain.dim)
        return
    whole, decisions = straight(run, learner.plan)
    assert_same_decisions(learner.observe_many(*run.tail).decisions(), decisions, learner.plan)
    assert (learner.rounds, learner.switches) == (whole.rounds, whole.switches)
    if learner.plan.private:
        assert learner.spent() == pytest.approx(whole.spent(), rel=1e-3)  # plans of epochs are made anew
    # What was loaded is saved in today's form.
    learner.save(tmp_path / "again")
    assert rt.load(tmp_path / "again", loss=run.given).rounds == learner.rounds


@pytest.mark.parametrize("name", kept("journals.zip"))
def test_journals_are_read_and_resumed(name, tmp_path):
    run, path = JOURNALS[name], tmp_path / "journal"
    with zipfile.ZipFile(BEFORE / "journals.zip") as files:
        path.write_bytes(files.read(name))
    with Reader(path) as reader:
        assert reader.rounds == run.cut + 1
        assert reader.verify().rounds == run.cut + 1
    with rt.Journal(path) as journal:
        learner = journal.resume()
        whole, decisions = straight(run, learner.plan)
        found = learner.observe_many(*(part[1:] for part in run.tail)).decisions()
        assert_same_decisions(found, decisions[1:], learner.plan)
        assert learner.switches == whole.switches


def test_every_old_name_is_that_of_a_class():
    for old, tag in OLD_NAMES.items():
        assert isinstance(_tags.tagged(tag), type), f"{old} is called {tag!r}, which nothing is"


def test_announced_tags_are_declared():
    for tag in _tags.tags():
        assert _tags.tag_of(_tags.tagged(tag)) == tag


def test_a_name_that_nothing_ever_had_is_refused():
    assert "learners._walk:Walk" in OLD_NAMES
    assert _tags.tagged("learners._walk:Walk") is None
    assert _tags.tagged("no such tag") is None
