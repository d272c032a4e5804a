"""Where randomness comes from."""

import numpy as np
import pytest

import reticent as rt


def test_no_seed_means_a_cryptographic_generator():
    one, two = rt.generator(), rt.generator()
    assert type(one.bit_generator).__name__ == "ChaCha"
    assert one.random() != two.random()


def test_kernels_take_it():
    m = rt.Gibbs(rt.Ball(2), rt.Logistic(), 1.0, 1.0)
    m.observe([0.5, 0.5], 1)
    assert not np.array_equal(m.draw().point, m.draw().point)


def test_seeds_and_generators_are_accepted():
    assert rt.generator(3).random() == rt.generator(3).random()
    given = np.random.default_rng(1)
    assert rt.generator(given) is given


@pytest.mark.parametrize("seed", [-1, 1.5, "a", True])
def test_other_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="seed must be None"):
        rt.generator(seed)
