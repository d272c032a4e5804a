"""Rounds of streams: shapes, slopes, the same ones every time however they are cut."""

import pickle

import numpy as np
import pytest

import reticent as rt
from reticent.lab import streams
from reticent.learners import make
from reticent.losses._gate import Gate
from reticent.planning import plan_descent

HEAD = 3000
SETTINGS = (
    *streams.names(),
    "iid:loss=hinge,dim=1",
    "drifting:loss=absolute,dim=1,period=7",
    "alternating:loss=logistic,noise=0.3,period=50",
    "piecewise:loss=linear,noise=3,dim=40",
    "worst-laziness:period=7,dim=1",
    "worst-privacy:batch=3,swing=0.5,world=1,dim=2",
    "latency:level=0.05",
)


def head_of(spec):
    stream = streams.get(spec)
    return stream.head(min(HEAD, stream.rounds))


@pytest.mark.parametrize("spec", SETTINGS)
class TestEveryStream:
    def test_has_rows_that_pass_the_gate_at_the_stated_slope(self, spec):
        stream = head_of(spec)
        block = stream.block()
        assert len(block) == len(stream.loss.data)
        assert all(len(part) == stream.rounds for part in block)
        Gate(stream.domain, stream.loss, stream.lipschitz, on_steep="raise").prepare(*block)
        slopes = stream.loss.lipschitz(stream.domain, *block)
        assert slopes.max() > 0.1 * stream.lipschitz  # the bound is not idle
        assert len(stream.decision) == stream.domain.dim

    def test_says_what_it_is(self, spec):
        stream = streams.get(spec)
        for words in (stream.title, stream.why, stream.source, stream.scaling):
            assert len(words) > 10
        assert stream.best_for in ("private", "lazy")

    def test_is_the_same_every_time_and_in_blocks_of_any_size(self, spec):
        stream = head_of(spec)
        whole = stream.block()
        for size in (1000, 777, HEAD + 1):
            blocks = list(stream.blocks(size))
            assert [len(block[0]) for block in blocks[:-1]] == [size] * (len(blocks) - 1)
            for part, *cut in zip(whole, *blocks, strict=True):
                assert np.array_equal(part, np.concatenate(cut))

    def test_its_name_makes_it_again(self, spec):
        stream = head_of(spec)
        again = streams.get(stream.name)
        assert again == stream
        assert all(np.array_equal(a, b) for a, b in zip(again.block(), stream.block(), strict=True))

    def test_travels_to_another_process(self, spec):
        stream = head_of(spec)
        assert pickle.loads(pickle.dumps(stream)).block()[0].shape == stream.block()[0].shape


def test_all_rounds_of_the_real_ones_are_there():
    for about in streams.describe():
        if about.kind == "real":
            stream = streams.get(about.name)
            block = stream.block()
            assert len(block[0]) == about.rounds
            Gate(stream.domain, stream.loss, stream.lipschitz).prepare(*block)
            with pytest.raises(ValueError, match="must have"):
                list(streams.Stream(**{**vars(stream), "rounds": stream.rounds + 1}).blocks())


def test_cutting_is_right_where_pieces_meet():
    stream = streams.get("logistic:rounds=40000,dim=3")
    whole = stream.block()
    odd = list(stream.blocks(9_973))
    for part, *cut in zip(whole, *odd, strict=True):
        assert np.array_equal(part, np.concatenate(cut))


def test_a_changed_block_does_not_reach_the_next_pass():
    stream = streams.get("phishing")
    first = stream.block()
    kept = first[0].copy()
    first[0][:] = 7.0
    assert np.array_equal(stream.block()[0], kept)


def test_a_long_stream_needs_no_memory_and_begins_as_a_short_one():
    long = streams.get("drifting:rounds=1e12,dim=2")
    first = next(long.blocks(100))
    assert np.array_equal(first[0], streams.get("drifting:rounds=100,dim=2").block()[0])


def test_seeds_make_different_rounds():
    for name in ("iid", "piecewise", "worst-regret", "latency", "experts"):
        one, two = (streams.get(f"{name}:seed={seed}").head(50).block()[-1] for seed in (1, 2))
        assert not np.array_equal(one, two)


def test_a_learner_takes_a_stream():
    stream = streams.get("fair").head(200)
    learner = make(plan_descent(stream.domain, stream.rounds, stream.lipschitz), stream.loss, on_steep="raise")
    for block in stream.blocks(64):
        learner.observe_many(*block)
    assert learner.rounds == 200


@pytest.mark.parametrize("size", [0, -1, 1.5, "many"])
def test_a_bad_size_is_refused(size):
    with pytest.raises(ValueError, match="size"):
        next(streams.get("iid").blocks(size))


def test_a_head_longer_than_the_stream_is_refused():
    with pytest.raises(ValueError, match="at most 1,250"):
        streams.get("phishing").head(1251)


def test_it_is_a_domain_and_a_loss_of_the_library():
    stream = streams.get("nyse_o")
    assert stream.domain == rt.Simplex(36)
    assert stream.loss == rt.Squared()
