"""What is kept of a run is what happened, however the stream is cut into blocks."""

import numpy as np
import pytest

import reticent as rt
from reticent.lab import Recorder, Run, Study, TooSlow, hindsight, plan_facts, stream_facts, walk
from reticent.lab._walk import _PATH, places
from reticent.planning import plan_descent


class Tiny:
    """A stream of its own making: the attributes that `walk` reads."""

    name, title, why, source, scaling = "tiny", "a tiny stream", "a test", "made here", "none"
    decision = ("a", "b")
    lipschitz = 1.0

    def __init__(self, rounds=700, size=64, loss=None):
        rng = np.random.default_rng(5)
        self.rounds, self.size, self.loss = rounds, size, loss or rt.Logistic()
        self.domain = rt.Ball(2)
        self.features = rng.uniform(-0.7, 0.7, (rounds, 2))
        self.targets = np.where(self.features[:, 0] + 0.3 * rng.standard_normal(rounds) > 0, 1.0, -1.0)

    def blocks(self, size=None):
        size = size or self.size
        for first in range(0, self.rounds, size):
            yield self.features[first : first + size], self.targets[first : first + size]


@pytest.fixture(scope="module")
def plan():
    return rt.plan_private(rt.Ball(2), 700, 1.0, epsilon=2.0, delta=1e-5)


def whole(plan, stream, seed):
    return rt.make(plan, stream.loss, seed).observe_many(stream.features, stream.targets)


@pytest.mark.parametrize("size", [1, 64, 700])
def test_a_run_is_what_happened(plan, size):
    stream = Tiny(size=size)
    trace = whole(plan, stream, 3)
    run = walk(plan, stream, 3)
    assert (run.rounds, run.switches, run.whole) == (700, trace.switches, True)
    assert run.starts == trace.starts.tolist()
    assert np.array_equal(run.points, trace.points)
    assert run.at == places(700).tolist()
    assert run.losses == pytest.approx(np.cumsum(trace.losses)[np.array(run.at) - 1], rel=1e-12)
    assert run.switched == [int(np.count_nonzero(trace.switch_times <= t)) for t in run.at]
    signs = np.einsum("ij,ij->i", trace.decisions(), stream.features) * stream.targets > 0
    assert run.correct == np.count_nonzero(signs)


def test_the_best_decision_and_the_regret_against_it(plan):
    stream = Tiny()
    best = hindsight(stream)
    trace = whole(plan, stream, 3)
    found = trace.regret()
    assert walk(plan, stream, 3, best=best).regret == pytest.approx(float(found), abs=1e-2)
    assert best.curve[-1] == pytest.approx(best.value, rel=1e-9)
    assert best.at == places(700).tolist()
    against = trace.curve(found.comparator)
    ours = np.cumsum(trace.losses)[np.array(best.at) - 1] - np.array(best.curve)
    assert ours == pytest.approx(against[np.array(best.at) - 1], abs=1e-2)


def test_a_long_path_is_thinned_and_says_so():
    recorder = Recorder(rt.Linear())
    plan = plan_descent(rt.Interval(-1.0, 1.0), 20_000, 1.0)
    learner = rt.make(plan, rt.Linear())
    rng = np.random.default_rng(1)
    for _ in range(20):
        recorder.add(learner.observe_many(rng.uniform(-1, 1, (1000, 1))))
    run = recorder.run("x", 0, plan_facts(plan), 0.0)
    assert not run.whole
    assert _PATH < len(run.starts) <= 2 * _PATH + 1
    assert run.starts == sorted(run.starts)
    assert run.correct is None


def test_patience(plan):
    with pytest.raises(TooSlow, match="of 700 rounds"):
        walk(plan, Tiny(), 3, patience=0.0)


def test_what_is_promised_is_written_down(plan):
    facts = plan_facts(plan, spent=True)
    assert facts["spent"] == sorted(facts["spent"])
    assert 0 < facts["spent"][-1] <= facts["epsilon"] == 2.0
    assert facts["spent_at"][-1] == 700
    assert "epsilon" in facts["text"].lower()
    assert plan_facts(plan_descent(rt.Ball(2), 9, 1.0), spent=True)["spent"] is None


def test_a_study_is_kept_whole(tmp_path, plan):
    stream = Tiny()
    best = hindsight(stream)
    study = Study("t", "run", stream_facts(stream), {"epsilon": 2.0}, [walk(plan, stream, 1, best=best)], best)
    again = Study.load(study.save(tmp_path / "deep" / "s.json"))
    assert again == study
    assert isinstance(again.runs[0], Run)
    assert [path.name for path in (tmp_path / "deep").iterdir()] == ["s.json"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "damaged"),
        ("[1]", "not one"),
        ('{"kind": "reticent study", "version": 9}', "version 9"),
        ('{"kind": "reticent study", "version": 1, "study": {"title": "t"}}', "missing or wrong"),
        ('{"kind": "reticent study", "version": 1}', "missing or wrong"),
    ],
)
def test_what_is_no_study_is_refused(tmp_path, text, says):
    path = tmp_path / "s.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=says):
        Study.load(path)
