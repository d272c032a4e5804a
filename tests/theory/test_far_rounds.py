"""A round far out moves draws and coins by what it says, and takes no digits from the others (docs/theory, Q12).

On [-1, 1] the loss |x - y| is y - x for every y from 1 on: y = 3 and y = 1e20 are one and the same round but for a
constant. As long as sums were of losses, and not of how they grow from the centre, the second had the digits of 1e20,
the whole batch became a tie, and whether a decision was kept told the two apart: 949 of 32,879 against 30 of 38,418.
"""

from fractions import Fraction

import numpy as np
import pytest

import reticent as rt
from reticent.gibbs._kinks import _sum_at
from reticent.planning import plan_flat, plan_l2p, plan_private
from reticent.systems.l2p._flat import DartboardCoin
from reticent.systems.l2p._l2p import ComparedCoin
from reticent.systems.pcomw._kernels import _ratio
from reticent.systems.pcomw._walk import AuxiliaryCoin

LINE, DISC = rt.Interval(-1.0, 1.0), rt.Ball(2)
LOSSES = [rt.Absolute(), rt.Pinball(0.3), rt.Huber(0.5), rt.Hinge(1.0), rt.Logistic()]
FAR = [1e5, 1e10, 1e15, 1e20, 1e200]


def rounds(loss, domain, far, count=40):
    """Rounds of length 1 at most, the first of which lies `far` out, on the flat or linear side of its loss."""
    rng = np.random.default_rng(3)
    features = rng.uniform(-1.0, 1.0, (count, domain.dim)) / np.sqrt(domain.dim)
    targets = rng.uniform(-1.0, 1.0, count)
    if isinstance(loss, rt.Hinge | rt.Logistic):
        return loss.prepare(domain, features, np.sign(targets))
    features[0] = np.eye(domain.dim)[0]
    targets[0] = far
    return loss.prepare(domain, features, targets)


def chance(kind, domain, loss, far):
    """Return what a coin takes for the chance to keep a point."""
    rows = rounds(loss, domain, far)
    u, rng = np.full(domain.chart_dim, 0.4), np.random.default_rng(5)
    claim = (domain, 10_000, 1.0, 1.0, 1e-6)
    if kind == "flat weights":
        plan = plan_flat(*claim, max_switches=20)
        coin = DartboardCoin(plan)
    elif kind == "lazy-to-private":
        plan = plan_l2p(*claim)
        coin = ComparedCoin(plan)
        coin.y = np.full(domain.chart_dim, -0.2)
    else:
        plan = plan_private(*claim)
        coin = AuxiliaryCoin(plan)
    lam = getattr(plan, "lam", 0.0)
    measure = rt.Gibbs(domain, loss, plan.beta, lam, limit=100_000)
    return coin.keeps(measure, rows, u, rng)


@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
@pytest.mark.parametrize("domain", [LINE, DISC], ids=repr)
@pytest.mark.parametrize("kind", ["P-COMW", "lazy-to-private", "flat weights"])
def test_coins_do_not_care_how_far_out_a_round_is(kind, domain, loss):
    near = chance(kind, domain, loss, 4.0)
    found = [chance(kind, domain, loss, far) for far in FAR]
    assert found == pytest.approx([near] * len(FAR), rel=2.0**-40)


@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_compiled_coins_and_values_do_not_either(loss):
    points, u = np.array([[0.1, 0.7], [-0.4, 0.2]]), np.array([0.3, -0.6])
    found = []
    for far in [4.0, *FAR]:
        measure = rt.Gibbs(DISC, loss, beta=0.02, lam=10.0)
        rows = rounds(loss, DISC, far)
        measure.add(rows)
        found.append(
            [
                _ratio(measure._history.past, 0.02, 40, 40, points, u),
                measure.log_density(u),
                *loss.total(DISC, rows, points),
            ]
        )
    np.testing.assert_allclose(found[1:], [found[0]] * len(FAR), rtol=2.0**-40, atol=2.0**-46)


@pytest.mark.parametrize("method", ["line", "tangent", "curved", "quartic"])
@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_draws_do_not_either(method, loss):
    domain = LINE if method == "line" else DISC
    made = {}
    for far in [4.0, *FAR]:
        measure = rt.Gibbs(domain, loss, beta=0.5, lam=3.0)
        measure.add(rounds(loss, domain, far))
        if method not in measure.methods:
            pytest.skip(f"{loss} is not drawn from by {method}")
        rng = np.random.default_rng(1)
        made[far] = np.array([measure.draw(rng, method).point for _ in range(200)])
    # Samplers look for a good reference point: where it lies may change in its last digits, and with it the draws.
    for far in FAR:
        assert np.mean(np.abs(made[far] - made[4.0]) < 1e-9) > 0.99


# On a line, a round's slope used to be summed up over its breaks, from minus infinity on: lost where they are far out.


def on_a_line(loss, features, targets, beta=0.5):
    measure = rt.Gibbs(LINE, loss, beta=beta, lam=3.0)
    measure.observe_many(np.linspace(-1.0, 1.0, 5)[:, None], np.linspace(0.5, -0.5, 5))
    measure.observe_many(np.array(features)[:, None], np.array(targets))
    return measure


def slopes_on_a_line(measure, points):
    """What the line sampler takes for the slope of the sum of the losses, and what the rows say."""
    measure.draw(np.random.default_rng(1), "line")
    sampler = measure._samplers["line"]
    parts = sampler.parts(1000)
    sums = (parts.base, parts.breaks, parts.prefix, parts.starts[: parts.counts[0] + 1])
    return [(_sum_at(sums, x)[1], measure._history.gradient(np.array([x]))[0]) for x in points]


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("side", [1.0, -1.0])
@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
def test_slopes_on_a_line_do_not_care_on_which_side_a_round_is(loss, side, sign):
    for far in (4.0, *FAR, 2.0**53 + 6, 1e300):
        found = slopes_on_a_line(on_a_line(loss, [sign] * 3, [side * far] * 3), [-0.93, -0.1, 0.61])
        assert [one for one, _ in found] == pytest.approx([other for _, other in found], rel=1e-13)


@pytest.mark.parametrize(("width", "target", "wrong"), [(0.5, -1e16, -0.5), (1.0, -(2.0**53) - 2, 3.0)])
def test_slopes_that_are_summed_over_breaks_are_wrong_far_out(width, target, wrong):
    """The negative control: a round that falls for one that rises, and one three times as steep as any may be."""
    slope = Fraction(-width)
    for margin, bend in ((-width, 1.0), (width, -1.0)):
        slope -= Fraction(bend * (margin + target))  # the sum exact, the place of the break not
    assert slope == wrong
    ((found, exact),) = slopes_on_a_line(on_a_line(rt.Huber(width), [1.0], [target], beta=0.5), [0.0])
    without = slopes_on_a_line(on_a_line(rt.Huber(width), [0.0], [0.0]), [0.0])[0][1]
    assert found - without == pytest.approx(width) == exact - without


@pytest.mark.parametrize("loss", LOSSES[:3], ids=repr)
@pytest.mark.parametrize("feature", [1e-149, -1e-149, 1e-100])
def test_breaks_that_are_no_numbers_leave_a_measure_as_it_is(loss, feature):
    """A break at minus infinity made the slope no number, and the draw had no end."""
    for target in (-1e200, 1e200, -1e300):
        found = slopes_on_a_line(on_a_line(loss, [feature], [target]), [-0.93, 0.61])
        without = [measure for _, measure in slopes_on_a_line(on_a_line(loss, [0.0], [0.0]), [-0.93, 0.61])]
        assert [one for one, _ in found] == pytest.approx(without, rel=1e-13)


@pytest.mark.parametrize("width", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15, 1e-16, 3e-17])
def test_narrow_huber_losses_are_as_steep_as_they_say(width):
    """Between two breaks slopes rose by what is left of their distance, which for 1e-16 is nothing or twice as much."""
    rng = np.random.default_rng(7)
    targets, features = rng.uniform(-0.9, 0.9, 50), rng.choice([-1.0, 1.0], 50)
    measure = on_a_line(rt.Huber(width), features, features * targets, beta=0.5 / width)
    for found, exact in slopes_on_a_line(measure, [-0.97, -0.3, 0.21, 0.95]):
        assert found / width == pytest.approx(exact / width, abs=1e-6)


def test_a_custom_loss_moves_a_sum_by_its_declared_slope_at_most():
    loss = rt.Custom(lambda x, y: float(abs(x[0] - y)), lambda x, y: np.sign(x - y), lipschitz=1.0)
    measure = rt.Gibbs(LINE, loss, beta=1.0, lam=1.0)
    measure.observe_many([0.3, 1e20, -0.5, 7.0])
    u = np.array([0.25])
    without = 0.05 + 0.75 - 0.8 - 0.25
    assert abs(measure._history.value(u) - without) <= 0.25
    rows = loss.prepare(LINE, [0.3, 1e20, -0.5, 7.0])
    assert abs(loss.total(LINE, rows, u[None])[0] - without) <= 0.25


def test_sums_of_losses_themselves_forget_the_others():
    """The negative control: what sums were of."""
    rows = rounds(rt.Absolute(), LINE, 1e20)
    both = [rt.Absolute().phi(rows.vectors @ u + rows.offsets).sum() for u in (np.array([-0.9]), np.array([0.9]))]
    assert both[0] == both[1]
    assert np.ptp(rt.Absolute().total(LINE, rows, np.array([[-0.9], [0.9]]))) > 0.1
