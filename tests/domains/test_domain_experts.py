"""The domain of experts: geometry, the chart, refusals, and the best expert in hindsight."""

import pickle

import numpy as np
import pytest

import reticent as rt
from reticent.domains import Experts
from reticent.hindsight._comparator import best_fixed


def test_points_are_single_ones():
    domain = Experts(4)
    assert (domain.dim, domain.chart_dim, domain.diameter, domain.radius, domain.finite) == (4, 4, 1.0, 1.0, True)
    for point in np.eye(4):
        assert domain.contains(point)
        assert np.array_equal(domain.from_chart(domain.to_chart(point)), point)
    for point in ([0.5, 0.5, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0]):
        assert not domain.contains(point)
    assert np.array_equal(domain.project([0.2, 0.9, 0.1, 0.0]), np.eye(4)[1])
    assert np.array_equal(domain.support([3.0, 2.0, 1.0, 5.0]), np.eye(4)[2])


def test_chart_puts_the_least_loss_at_zero_and_keeps_differences():
    domain, rows = Experts(3), np.random.default_rng(0).normal(size=(50, 3))
    vectors, offsets = domain.pull(rows)
    assert (vectors.min(axis=1) == 0).all()
    assert np.allclose(vectors + offsets[:, None], rows, atol=1e-15)
    assert np.allclose(domain.lengths(rows), np.ptp(rows, axis=1))


def test_clipping_keeps_the_range_and_the_zero():
    rows = rt.Linear().prepare(Experts(3), [[5.0, 1.0, 2.0], [0.1, 0.2, 0.3]], lipschitz=1.0, on_steep="clip")
    assert np.ptp(rows.vectors, axis=1) == pytest.approx([1.0, 0.2])
    assert (rows.vectors.min(axis=1) == 0).all()
    with pytest.raises(ValueError, match="Lipschitz constant 4"):
        rt.Linear().prepare(Experts(3), [[5.0, 1.0, 2.0]], lipschitz=1.0)


def test_equality_pickling_and_refusals():
    assert Experts(3) == Experts(3) != Experts(4)
    assert pickle.loads(pickle.dumps(Experts(3))) == Experts(3)
    assert repr(Experts(3)) == "Experts(3)"
    with pytest.raises(ValueError, match="at least 2"):
        Experts(1)
    with pytest.raises(ValueError, match="finite set without a volume"):
        Experts(3).log_z(1.0)


@pytest.mark.parametrize("rounds", [1, 7, 10_000])
def test_best_expert_in_hindsight_is_exact(rounds):
    domain, rng = Experts(5), np.random.default_rng(rounds)
    rows = rng.normal(size=(rounds, 5)) + 100.0
    prepared = rt.Linear().prepare(domain, rows)
    for blocks in ([prepared], [prepared[:3], prepared[3:]], lambda: iter([prepared])):
        best = best_fixed(domain, rt.Linear(), blocks, 10.0)
        sums = rows.sum(axis=0)
        assert np.array_equal(best.point, np.eye(5)[np.argmin(sums)])
        assert abs(best.value - sums.min()) <= best.gap
        assert best.gap <= 1e-8 * rounds * 110
    with pytest.raises(ValueError, match="at least one round"):
        best_fixed(domain, rt.Linear(), [], 1.0)


def test_other_losses_have_no_best_expert():
    rows = rt.Absolute().prepare(rt.Ball(3), [[1.0, 0.0, 0.0]], [0.0])
    with pytest.raises(ValueError, match="must be Linear"):
        best_fixed(Experts(3), rt.Absolute(), [rows], 1.0)
