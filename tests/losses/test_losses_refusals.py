"""Shapes, labels, parameters and objects: what is accepted, and what is refused with which words."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from reticent.losses import Absolute, Custom, Hinge, Huber, Linear, Logistic, Loss, Pinball, Squared


def test_one_row_may_come_bare(cube) -> None:  # type: ignore[no-untyped-def]
    rows = Absolute().prepare(cube, [1.0, 2.0], 0.5)
    np.testing.assert_array_equal(rows.vectors, [[1, 2]])
    np.testing.assert_array_equal(rows.offsets, [-0.5])
    assert Linear().prepare(cube, [1.0, 2.0]).vectors.shape == (1, 2)
    assert Absolute().values([1.0, 1.0], [1.0, 2.0], 0.5).shape == (1,)


def test_in_one_dimension_a_flat_array_is_a_column(cube) -> None:  # type: ignore[no-untyped-def]
    line = type(cube)(1)
    assert Absolute().prepare(line, [1.0, 2.0, 3.0], [0, 0, 0]).vectors.shape == (3, 1)
    assert Linear().prepare(line, [1.0, 2.0]).vectors.shape == (2, 1)
    assert Linear().prepare(line, 2.0).vectors.shape == (1, 1)
    assert Absolute().prepare(line, 2.0, 1.0).vectors.shape == (1, 1)
    with pytest.raises(ValueError, match="targets must be a vector of length 3"):
        Absolute().prepare(line, [1.0, 2.0, 3.0], 0.0)


def test_other_dtypes_and_layouts_become_contiguous_doubles(cube) -> None:  # type: ignore[no-untyped-def]
    wide = np.arange(12, dtype=np.float32).reshape(2, 6).T
    for features in (wide, wide.astype(int), wide.astype(float)[::2]):
        vectors = Squared().prepare(cube, features, np.zeros(len(features))).vectors
        assert vectors.dtype == np.float64
        assert vectors.flags.c_contiguous
        np.testing.assert_array_equal(vectors, features)


BAD: list[tuple[Any, Any, str]] = [
    (np.ones((3, 3)), np.ones(3), r"features must be rows of 2 numbers .*got shape \(3, 3\)"),
    (np.ones(3), 1.0, r"features must be rows of 2 numbers .*got shape \(3,\)"),
    (np.ones((2, 2, 2)), np.ones(2), "features must be rows of 2 numbers"),
    (np.ones((3, 2)), np.ones(2), r"targets must be a vector of length 3, got shape \(2,\)"),
    (np.ones((3, 2)), np.ones((3, 1)), r"targets must be a vector of length 3, got shape \(3, 1\)"),
    (np.ones((3, 2)), 1.0, r"targets must be a vector of length 3, got shape \(\)"),
    (np.ones((0, 2)), np.ones(0), "at least one row"),
    ([], [], "at least one row"),
    ([[1.0, np.nan]], [1.0], r"features must be finite, got nan at index \(0, 1\)"),
    ([[1.0, 2.0], [-np.inf, 0.0]], [1.0, 1.0], r"features must be finite, got -inf at index \(1, 0\)"),
    ([[1.0, 2.0], [1.0, 0.0]], [1.0, np.nan], r"targets must be finite, got nan at index \(1,\)"),
    ([["a", "b"]], [1.0], "features must hold real numbers only"),
    ([[1.0, 2.0], [1.0]], [1.0, 1.0], "features must hold real numbers only"),
]


@pytest.mark.parametrize(("features", "targets", "words"), BAD)
def test_bad_blocks_are_refused(cube, features: Any, targets: Any, words: str) -> None:  # type: ignore[no-untyped-def]
    for loss in (Squared(), Logistic()):
        with pytest.raises(ValueError, match=words):
            loss.prepare(cube, features, targets)
        with pytest.raises(ValueError, match=words):
            loss.values([0.0, 0.0], features, targets)


def test_rows_that_overflow_are_refused(slab, cube) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"features must be small enough .* in row 1"):
        Squared().prepare(slab, [[1.0, 1.0, 1.0], [1.7e308, 1.7e308, -1.7e308]], [0.0, 0.0])
    slab.center = np.array([1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"targets must be small enough .*row 0"):
        Squared().prepare(slab, [1e308, 0.0, 0.0], -1.7e308)


def test_on_steep_is_one_of_two(cube) -> None:  # type: ignore[no-untyped-def]
    words = '"raise" or "clip", got \'drop\''
    with pytest.raises(ValueError, match=words):
        Linear().prepare(cube, [1.0, 0.0], on_steep="drop")
    with pytest.raises(ValueError, match=words):
        Hinge().prepare(cube, [1.0, 0.0], 1, lipschitz=3.0, on_steep="drop")
    with pytest.raises(ValueError, match=words):
        manhattan(1.0).prepare(cube, [np.zeros(2)], on_steep="drop")


@pytest.mark.parametrize("loss", [Hinge(), Logistic()])
def test_labels(cube, loss: Hinge | Logistic) -> None:  # type: ignore[no-untyped-def]
    features = np.array([[1.0, 2.0], [3.0, 4.0]])
    expected = loss.prepare(cube, features, [-1, 1])
    np.testing.assert_array_equal(expected.vectors, [[-1, -2], [3, 4]])
    for labels in ([0, 1], [False, True], np.array([-1.0, 1.0]), np.array([False, True])):
        np.testing.assert_array_equal(loss.prepare(cube, features, labels).vectors, expected.vectors)
    with pytest.raises(ValueError, match=r"labels -1 or \+1 .*got 2.0 in row 1"):
        loss.prepare(cube, features, [1, 2])
    with pytest.raises(ValueError, match=r"got 0.5 in row 0"):
        loss.subgradients([0.0, 0.0], features, [0.5, 1])
    np.testing.assert_array_equal(features, [[1, 2], [3, 4]])


@pytest.mark.parametrize("tau", [0.0, 1.0, -0.1, np.nan, "half"])
def test_pinball_levels_outside_the_unit_interval_are_refused(tau: Any) -> None:
    with pytest.raises(ValueError, match="tau must"):
        Pinball(tau)


@pytest.mark.parametrize("size", [0.0, -1.0, np.inf])
def test_widths_and_margins_must_be_positive(size: float) -> None:
    with pytest.raises(ValueError, match="width must"):
        Huber(size)
    with pytest.raises(ValueError, match="margin must"):
        Hinge(size)


def one_norm(x: Any, c: Any) -> float:
    return float(np.abs(x - c).sum())


def one_norm_slope(x: Any, c: Any) -> Any:
    return np.sign(x - c)


def manhattan(lipschitz: Any = None) -> Custom:
    return Custom(one_norm, one_norm_slope, lipschitz=lipschitz)


ALL: list[Loss] = [
    Linear(), Absolute(), Pinball(0.3), Hinge(), Huber(2), Logistic(), Squared(), manhattan(), manhattan(2.0)
]  # fmt: skip


@pytest.mark.parametrize("loss", ALL, ids=lambda loss: type(loss).__name__)
def test_losses_are_values(loss: Loss) -> None:
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert twin == loss
        assert hash(twin) == hash(loss)
    assert [other == loss for other in ALL].count(True) == 1
    assert repr(loss).startswith(type(loss).__name__ + "(")
    for name in ("tau", "bound", "anything"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(loss, name, 1.0)


def test_reprs_read_like_the_call() -> None:
    assert repr(Linear()) == "Linear()"
    assert repr(Pinball(0.25)) == "Pinball(tau=0.25)"
    assert repr(Huber(2)) == "Huber(width=2.0)"
    assert repr(manhattan(2)).endswith("lipschitz=2.0)")


def test_custom_values_and_subgradients() -> None:
    items = [np.array([1.0, -2.0]), np.array([0.0, 1.0])]
    np.testing.assert_array_equal(manhattan().values([0.0, 0.0], items), [3, 1])
    np.testing.assert_array_equal(manhattan().subgradients([0.0, 0.0], items), [[-1, 1], [0, -1]])
    with pytest.raises(ValueError, match="value of item 1 must be finite"):
        Custom(lambda x, c: c, lambda x, c: x).values([0.0], [1.0, np.nan])
    with pytest.raises(ValueError, match="subgradient of item 0 must be a vector of length 2"):
        Custom(lambda x, c: c, lambda x, c: [c]).subgradients([0.0, 0.0], [1.0])


def test_custom_limits(cube) -> None:  # type: ignore[no-untyped-def]
    loss = Custom(one_norm, one_norm_slope, lipschitz=abs)
    np.testing.assert_array_equal(loss.lipschitz(cube, [1.0, -4.0]), [1, 4])
    ready = loss.prepare(cube, [1.0, -4.0], lipschitz=2.0, on_steep="clip")
    assert ready.items == (1.0, -4.0)
    assert len(ready) == 2
    np.testing.assert_array_equal(ready.scales, [1, 0.5])
    np.testing.assert_array_equal(ready.bounds, [1, 2])
    with pytest.raises(ValueError, match=r"row 1 has Lipschitz constant 4, .*lipschitz=2"):
        loss.prepare(cube, [1.0, -4.0], lipschitz=2.0)
    np.testing.assert_array_equal(loss.prepare(cube, [1.0, -4.0]).bounds, [1, 4])
    assert np.all(np.isinf(manhattan().prepare(cube, [1.0, -4.0]).bounds))
    with pytest.raises(ValueError, match=r"give Custom\(\.\.\., lipschitz=\.\.\.\)"):
        manhattan().prepare(cube, [1.0], lipschitz=2.0)
    with pytest.raises(ValueError, match="lipschitz of item 1 must be finite"):
        loss.declared([1.0, np.inf])


@pytest.mark.parametrize("items", [3.0, "abc", {"a": 1}, (i for i in range(3)), np.array(1.0)])
def test_custom_takes_sequences_only(cube, items: Any) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match=r"sequence of objects.*\[datum\]"):
        manhattan().prepare(cube, items)


def test_custom_refuses_no_items_and_no_functions(cube) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ValueError, match="at least one object"):
        manhattan().prepare(cube, [])
    with pytest.raises(ValueError, match="subgradient must be a function"):
        Custom(one_norm, 3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="lipschitz must be"):
        manhattan(-1.0)
