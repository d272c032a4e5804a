"""Short words for domains, losses, numbers and systems."""

import pytest

import reticent as rt
from reticent.cli._specs import choice_of, counts_of, floats_of, horizon_of, system_names, system_of
from reticent.systems._texts import count_of, domain_of, loss_of


@pytest.mark.parametrize(
    ("spec", "domain"),
    [
        ("ball:10", rt.Ball(10)),
        ("ball:2:0.5", rt.Ball(2, 0.5)),
        ("interval:-1:20", rt.Interval(-1.0, 20.0)),
        ("box:0:1:3", rt.Box([0.0] * 3, [1.0] * 3)),
        ("simplex:4", rt.Simplex(4)),
        ("experts:7", rt.Experts(7)),
        ("BALL:1e1", rt.Ball(10)),
    ],
)
def test_domains(spec, domain):
    assert repr(domain_of(spec)) == repr(domain)


@pytest.mark.parametrize(
    "spec", ["linear", "logistic", "hinge", "squared", "absolute", "pinball:0.9", "huber:2", "huber"]
)
def test_losses(spec):
    assert type(loss_of(spec)).__name__.lower() == spec.partition(":")[0]


@pytest.mark.parametrize("spec", ["pinball", "pinball:", "logistic:1", "huber:0", "huber:a", ""])
def test_losses_that_are_none(spec):
    with pytest.raises(ValueError, match="loss"):
        loss_of(spec)


@pytest.mark.parametrize(("text", "value"), [("1e6", 10**6), ("1_000", 1000), ("20,190", 20190), (str(2**60), 2**60)])
def test_counts(text, value):
    assert count_of(text) == value


@pytest.mark.parametrize("text", ["", "x", "0", "-3", "1.5", "inf", "1e400"])
def test_counts_that_are_none(text):
    with pytest.raises(ValueError, match="rounds must be a whole number of at least 1"):
        count_of(text, "rounds")


def test_lists_of_numbers():
    assert floats_of("0.5, 1,3") == (0.5, 1.0, 3.0)
    assert counts_of("0,1e3") == (0, 1000)


def test_every_system_answers_to_its_own_name():
    for name in system_names():
        assert system_of(name) == name
        assert system_of(name.upper().replace(" ", "-")) == name


@pytest.mark.parametrize(
    ("short", "name"),
    [
        ("pcomw", "P-COMW"),
        ("dpftrl", "DP-FTRL"),
        ("dp-ftrl tree", "DP-FTRL, tree noise"),
        ("ogd", "online gradient descent"),
        ("l2p", "lazy-to-private (L2P)"),
        ("hedge", "multiplicative weights (Hedge)"),
        ("sherman", "lazy perturbed leader (Sherman, Koren)"),
        ("newton", "online Newton step"),
    ],
)
def test_systems_by_a_part_of_their_name(short, name):
    assert system_of(short) == name


def test_a_word_among_few():
    with pytest.raises(ValueError, match="backend must be loky or dask, got 'dusk'; did you mean 'dask'"):
        choice_of("backend", "dusk", ("loky", "dask"))


def test_a_goal_that_is_named_twice_is_one_goal():
    assert floats_of("1,0.5,1.0") == (1.0, 0.5)
    assert counts_of("5,5,5e0,7") == (5, 7)


def test_counts_may_have_an_end():
    assert count_of("1e3", "runs", most=1000) == 1000
    with pytest.raises(ValueError, match="runs must be at most 1,000, got '1001'"):
        count_of("1001", "runs", most=1000)
    assert (horizon_of(str(2**53)), horizon_of("unknown")) == (2**53, None)
    with pytest.raises(ValueError, match="--horizon unknown"):
        horizon_of(str(2**53 + 1))
