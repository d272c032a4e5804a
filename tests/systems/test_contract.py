"""One contract that every learner keeps, P-COMW and the prior systems alike."""

import importlib
import pickle
from pathlib import Path

import numpy as np
import pytest
from contract_rows import KINDS, bad_blocks, first_rows, one_row, stream

import reticent as rt
from reticent.learners import Learner

ALL = [
    case
    for path in sorted((Path(__file__).parent / "cases").glob("[!_]*.py"))
    for case in importlib.import_module(path.stem).CASES
]
CUTS = (1, 2, 7, 50, 113)


@pytest.fixture(params=ALL, ids=lambda case: case.name)
def case(request):
    return request.param


_plans = {}


def plan_of(case):
    if case.name not in _plans:
        _plans[case.name] = case.plan()
    return _plans[case.name]


def data_of(case, kind="steady", seed=0):
    plan = plan_of(case)
    return stream(kind, plan.domain, case.loss, plan.lipschitz, plan.horizon, seed, case.scale)


def new(case, seed=7):
    return rt.make(plan_of(case), case.loss, seed=seed)


def transcript(learner, blocks):
    return [learner.observe_many(*block) for block in blocks]


def cut(data, places):
    return [first_rows(data, a, b) for a, b in zip([0, *places], [*places, len(data[0])], strict=True)]


def same_state(a, b):
    assert a.rounds == b.rounds
    assert a.switches == b.switches
    assert np.array_equal(a.decision, b.decision)


def test_names_are_all_there_and_decisions_lie_in_the_domain(case):
    learner = new(case)
    assert isinstance(learner, Learner)
    data = data_of(case, "drifting")
    trace = learner.observe_many(*data)
    plan = plan_of(case)
    assert all(plan.domain.contains(x) for x in [*trace.points, trace.final])
    assert learner.rounds == plan.horizon == trace.rounds
    assert learner.switches == trace.switches
    assert not learner.decision.flags.writeable
    assert learner.plan is plan
    assert str(plan)
    assert "How good the decisions are" in plan.explain()
    assert type(learner).__name__ in repr(learner)


def test_rows_and_blocks_agree_to_the_last_bit(case):
    data = data_of(case, "alternating")
    rounds = len(data[0])
    whole = new(case).observe_many(*data)
    parts = rt.Trace.join(transcript(new(case), cut(data, CUTS)))
    single = new(case)
    decisions = []
    for i in range(rounds):
        decisions.append(single.decision)
        single.observe(*one_row(data, i))
    assert np.array_equal(whole.decisions(), np.array(decisions))
    assert np.array_equal(whole.final, single.decision)
    assert np.array_equal(whole.starts, parts.starts)
    assert np.array_equal(whole.points, parts.points)
    assert np.array_equal(whole.losses, parts.losses)
    assert single.switches == whole.switches


def test_seeds_reproduce_and_a_resumed_learner_goes_on_as_if_nothing_had_been(case):
    data = data_of(case, "drifting")
    straight, resumed = new(case), new(case)
    whole = straight.observe_many(*data)
    middle = len(data[0]) // 3
    head = resumed.observe_many(*first_rows(data, 0, middle))
    resumed.observe(*one_row(data, middle))
    resumed = pickle.loads(pickle.dumps(resumed))
    tail = resumed.observe_many(*first_rows(data, middle + 1, None))
    same_state(straight, resumed)
    assert np.array_equal(whole.decisions()[:middle], head.decisions())
    assert np.array_equal(whole.decisions()[middle + 1 :], tail.decisions())


def test_bad_rounds_change_nothing(case):
    plan = plan_of(case)
    data = data_of(case)
    spoiled, clean = new(case), new(case)
    for learner in (spoiled, clean):
        learner.observe_many(*first_rows(data, 0, 20))
    for block in bad_blocks(plan.domain, case.loss, plan.lipschitz, data):
        with pytest.raises((ValueError, TypeError)):
            spoiled.observe_many(*block)
        same_state(spoiled, clean)
    rest = first_rows(data, 20, None)
    assert np.array_equal(spoiled.observe_many(*rest).decisions(), clean.observe_many(*rest).decisions())
    same_state(spoiled, clean)


def test_budgets_hold(case):
    plan = plan_of(case)
    data = data_of(case, "alternating")
    learner = new(case)
    most = getattr(plan, "max_switches", None) if not isinstance(plan, rt.Plan) else plan.budget
    if plan.private:
        assert learner.spent() == 0.0
        learner.observe_many(*first_rows(data, 0, plan.horizon // 2))
        halfway = learner.spent()
        learner.observe_many(*first_rows(data, plan.horizon // 2, None))
        assert 0.0 <= halfway <= learner.spent() * (1 + 1e-9)
        assert learner.spent() <= plan.epsilon * (1 + 1e-9)
        with pytest.raises(ValueError, match="horizon"):
            learner.observe(*one_row(data, 0))
        assert learner.rounds == plan.horizon
    else:
        learner.observe_many(*data)
    assert most is None or learner.switches <= most


@pytest.mark.parametrize("kind", KINDS)
def test_measured_regret_is_below_the_certificate(case, kind):
    if not case.certified:
        pytest.skip("no certificate")
    regrets, switches = [], []
    for seed in range(3):
        learner = new(case, seed)
        trace = learner.observe_many(*data_of(case, kind, seed))
        regrets.append(float(trace.regret()))
        switches.append(trace.switches)
    plan = plan_of(case)
    assert np.mean(regrets) <= plan.regret_bound
    # The count is a sum of few dependent indicators: room for five deviations of a Poisson number.
    expected = plan.expected_switches
    assert expected is None or np.mean(switches) <= expected + 5 * np.sqrt(expected / 3) + 1


def test_wrong_plan_and_wrong_loss_are_refused(case):
    with pytest.raises(ValueError, match="plan must be"):
        type(new(case))("no plan", case.loss)
    with pytest.raises(ValueError, match="loss"):
        rt.make(plan_of(case), "no loss")
