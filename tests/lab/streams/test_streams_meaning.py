"""What the rows of streams mean, held against the files and the theorems they stand for."""

import numpy as np
import pytest

import reticent as rt
from reticent.lab import streams
from reticent.lab.streams._real import table


@pytest.mark.parametrize(("name", "days", "shares"), [("nyse_o", 5651, 36), ("djia", 507, 30)])
def test_relatives_multiply_up_to_the_prices(name, days, shares):
    dates, names, r = streams.relatives(name)
    assert dates is None
    assert len(names) == shares
    assert r.shape == (days, shares)
    prices = table("universal", "data", f"{name}.csv").to_numpy()
    assert np.allclose(np.cumprod(r, axis=0), prices, rtol=1e-9)


def test_an_unknown_market_is_told():
    with pytest.raises(ValueError, match="must be one of nyse_o, nyse_n, sp500, djia, got 'ftse'"):
        streams.relatives("ftse")


def test_the_loss_of_a_portfolio_is_the_growth_lost_to_second_order():
    _, _, r = streams.relatives("nyse_o")
    stream = streams.get("nyse_o")
    x = np.full(36, 1 / 36)
    gain = r @ x - 1
    lost = stream.loss.values(x, *stream.block()) - 0.5
    calm = np.linalg.norm(r - 1, axis=1) <= 0.3  # other days are scaled down
    assert calm.mean() > 0.99
    assert np.all(np.abs(lost + np.log1p(gain))[calm] <= np.abs(gain[calm]) ** 3)


def test_doctor_visits_are_those_of_the_file():
    people = table("statsmodels", "datasets", "randhie", "randhie.csv")
    visits = people["mdvis"].to_numpy()
    _, targets = streams.get("randhie-visits").block()
    features, labels = streams.get("randhie").block()
    assert np.array_equal(targets, np.minimum(visits, 80))
    assert np.array_equal(labels > 0, visits > 2)
    assert np.allclose(features[:, 2] * np.sqrt(7) * 60, people["disea"])
    assert np.allclose(features[:, 0], 1 / np.sqrt(7))


@pytest.mark.parametrize("world", [0, 1])
def test_the_worst_case_for_privacy_is_that_of_the_audit(world):
    plan = rt.Plan(rt.Ball(2, 9.0), 20, 1.0, beta=1.0, lam=1.0, p=0.5, phi=1.0, batch=3)
    swing = min(1.0, plan.domain.radius * plan.lam / (2 * plan.batch))
    made = streams.get(f"worst-privacy:rounds=20,dim=2,batch=3,swing={swing},world={world}").block()[0]
    assert np.allclose(np.abs(made), np.abs(rt.privacy.worst_case(plan)[world]), atol=1e-9)


def test_signs_are_held_for_the_period():
    rows = streams.get("worst-laziness:period=100").head(20_000).block()[0].reshape(200, 100, -1)
    assert np.all(rows == rows[:, :1])
    assert np.all(np.abs(rows).sum(axis=2) == 1)
    assert abs(rows[:, 0].sum()) < 6 * np.sqrt(200)


def test_random_signs_cost_the_root_of_the_rounds():
    sums = [np.linalg.norm(streams.get(f"worst-regret:seed={s}").head(4096).block()[0].sum(axis=0)) for s in range(20)]
    assert 48 < np.mean(sums) < 80  # about sqrt(4096) = 64


def test_a_piecewise_truth_turns_against_the_sum():
    rows = streams.get("piecewise:noise=0,dim=3").head(3000).block()[0]
    turns = np.flatnonzero(np.any(rows[1:] != rows[:-1], axis=1)) + 1
    assert len(turns) > 8
    for turn in turns[::2]:
        total = rows[:turn].sum(axis=0)
        assert rows[turn] @ total / (np.linalg.norm(total) * np.linalg.norm(rows[turn])) == pytest.approx(-1.0)


def test_latencies_have_a_daily_incident_and_end_at_the_timeout():
    taken = streams.get("latency").head(86_400).block()[1]
    minutes = np.median(taken[: 86_400 // 60 * 60].reshape(-1, 60), axis=1)
    slow = minutes > 1.6 * np.median(minutes)
    assert 9 <= slow.sum() <= 61
    assert taken.min() > 0
    assert taken.max() <= 10_000


def test_heavy_tails_are_heavy():
    _, targets = streams.get("heavy").head(20_000).block()
    assert np.abs(targets).max() > 100 * np.median(np.abs(targets))
