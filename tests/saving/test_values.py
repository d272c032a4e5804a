"""Values taken apart and put together again are the same, bit for bit, with shared references shared."""

import math
from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

import reticent as rt
from reticent.saving._format import body_of, thing_of


def again(thing):
    return thing_of("x", memoryview(b"".join(body_of("x", thing))))


def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray | np.generic):
        return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    return a == b


plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
kinds = scalar_dtypes().map(lambda kind: kind.newbyteorder("="))
matrices = kinds.flatmap(lambda kind: arrays(kind, array_shapes(min_dims=0, min_side=0, max_side=3)))
scalars = kinds.flatmap(lambda kind: arrays(kind, (1,))).map(lambda array: array[0])
values = st.recursive(
    plain | matrices | scalars | st.frozensets(st.integers()) | st.sets(st.text()),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=12,
)


@given(values)
def test_values_come_back(thing):
    back = again(thing)
    assert same(thing, back)
    assert b"".join(body_of("x", back)) == b"".join(body_of("x", thing))


def test_arrays_keep_their_order_and_whether_they_can_be_written():
    matrix = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    sealed = np.arange(3)
    sealed.flags.writeable = False
    back = again([matrix, matrix[:, 1:], matrix[::-1], sealed, np.arange(3, dtype=">i4")])
    assert back[0].flags.f_contiguous
    assert np.array_equal(back[0], matrix)
    assert np.array_equal(back[2], matrix[::-1])
    assert not back[3].flags.writeable
    assert back[4].tolist() == [0, 1, 2]
    assert all(array.flags.owndata for array in back[:4])


def test_what_is_shared_stays_shared_and_loops_are_closed():
    inner = [np.zeros(2)]
    loop = {"inner": inner, "again": inner, "pair": (inner, inner[0])}
    loop["self"] = loop
    back = again(loop)
    assert back["self"] is back
    assert back["inner"] is back["again"] is back["pair"][0]
    assert back["pair"][1] is back["inner"][0]


def test_plans_domains_and_recipes_come_back():
    for plan in (
        rt.plan_lazy(rt.Simplex(3), None, 1.0, max_switches=9),
        rt.Plan(rt.Polytope([[-1, 0], [0, -1], [1, 1]], [0, 0, 1]), 10, 1.0, beta=0.1, lam=5.0, p=0.0, phi=1.1),
    ):
        back = again(plan)
        assert back == plan
        assert str(back) == str(plan)
        assert isinstance(back.recipe, partial) == isinstance(plan.recipe, partial)
