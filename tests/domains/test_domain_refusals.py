"""What the bodies refuse, and what they say then."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from reticent.domains import Ball, Box, Domain, Interval, Polytope, Simplex

SQUARE = [[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Interval(1, 1), r"low must be below high, got low 1.0 and high 1.0 at index 0"),
        (lambda: Interval(2, 1), r"low must be below high"),
        (lambda: Interval(0, INF), r"high must be finite, got inf"),
        (lambda: Interval(NAN, 1), r"low must be finite, got nan"),
        (lambda: Interval("a", 1), r"low must be a real number, got 'a'"),  # type: ignore[arg-type]
        (lambda: Box([0, 3], [1, 2]), r"low 3.0 and high 2.0 at index 1"),
        (lambda: Box([0, 0], [1, 1, 1]), r"high must be a vector of length 2, got shape \(3,\)"),
        (lambda: Box(0, 1), r"low must be a vector, got shape \(\)"),
        (lambda: Box([], []), r"at least one coordinate"),
        (lambda: Box([NAN], [1]), r"low must be finite, got nan at index \(0,\)"),
        (lambda: Ball(0), r"dim must be a whole number of at least 1, got 0"),
        (lambda: Ball(1.5), r"dim must be a whole number"),  # type: ignore[arg-type]
        (lambda: Ball(2, 0.0), r"radius must be greater than 0, got 0.0"),
        (lambda: Ball(2, -1.0), r"radius must be greater than 0, got -1.0"),
        (lambda: Ball(2, INF), r"radius must be finite"),
        (lambda: Ball(2, 1.0, [0.0]), r"center must be a vector of length 2, got shape \(1,\)"),
        (lambda: Ball(2, 1.0, [0.0, NAN]), r"center must be finite, got nan"),
        (lambda: Simplex(1), r"dim must be a whole number of at least 2, got 1"),
        (lambda: Simplex(0), r"at least 2"),
        (lambda: Polytope([1.0, -1.0], [1, 1]), r"A must be rows of numbers"),
        (lambda: Polytope(np.zeros((0, 2)), []), r"at least one row and one column, got shape \(0, 2\)"),
        (lambda: Polytope(SQUARE, [1, 1]), r"b must be a vector of length 4"),
        (lambda: Polytope([[NAN, 0.0]], [1.0]), r"A must be finite, got nan"),
        (lambda: Polytope(SQUARE, [1, 1, 1, INF]), r"b must be finite, got inf"),
        (lambda: Polytope([*SQUARE, [0.0, 0.0]], [1, 1, 1, 1, 1]), r"only zeros in row 4"),
        (lambda: Polytope(SQUARE, [1, -2, 1, 1]), r"empty polytope: every point breaks a row by 0.5 or more"),
        (lambda: Polytope(SQUARE[:3], [1, 1, 1]), r"unbounded along \[-?0.0, -1.0\]; add rows"),
        (lambda: Polytope(SQUARE[:2], [1, 1]), r"unbounded along"),
        (lambda: Polytope([[-1, 0], [0, -1]], [0, 0]), r"unbounded along"),
        (lambda: Polytope([[1, 1], [-1, 0], [-1, -1]], [1, 0, 1]), r"unbounded along"),
        (lambda: Polytope([[1.0]], [1]), r"unbounded along"),
        (lambda: Polytope(SQUARE, [1, -1, 1, 1]), r"flat one \(inscribed radius 0"),
        (lambda: Polytope(SQUARE, [0, 0, 0, 0]), r"flat one"),
        (lambda: Polytope(SQUARE, [1, 1, 1, 1], [1, 0]), r"center must be strictly inside.*row 0"),
        (lambda: Polytope(SQUARE, [1, 1, 1, 1], [0, -3]), r"2 beyond row 3 .*leave center out"),
        (lambda: Polytope(SQUARE, [1, 1, 1, 1], [0]), r"center must be a vector of length 2"),
    ],
)
def test_bad_bodies_are_refused(make: Callable[[], Domain], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize(
    "body",
    [Interval(0, 1), Box([0, 0], [1, 1]), Ball(3), Simplex(3), Polytope(SQUARE, [1, 1, 1, 1])],
    ids=repr,
)
def test_bad_arguments_are_refused(body: Domain) -> None:
    wrong, bad = np.zeros(body.dim + 1), np.full(body.dim, NAN)
    for method, name in ((body.contains, "x"), (body.project, "x"), (body.support, "c")):
        with pytest.raises(ValueError, match=f"{name} must be a vector of length {body.dim}"):
            method(wrong)
        with pytest.raises(ValueError, match=f"{name} must be finite, got nan"):
            method(bad)
    with pytest.raises(ValueError, match=f"points must have {body.dim} coordinates along the last axis"):
        body.to_chart(wrong)
    with pytest.raises(ValueError, match="points must have"):
        body.from_chart(np.zeros((2, body.chart_dim + 1)))
    with pytest.raises(ValueError, match="points must have"):
        body.from_chart(0.0)
    with pytest.raises(ValueError, match="points must be finite"):
        body.to_chart(bad)
    with pytest.raises(ValueError, match="points must hold real numbers only, got 'a'"):
        body.to_chart("a")
    with pytest.raises(ValueError, match=f"rows must be rows of {body.dim} numbers"):
        body.pull(np.zeros((2, body.dim + 1)))
    with pytest.raises(ValueError, match="k must be at least 0, got -1"):
        body.log_z(-1.0)
    with pytest.raises(ValueError, match="k must be finite"):
        body.log_z(NAN)
    with pytest.raises(ValueError, match="side must be 'upper' or 'lower', got 'both'"):
        body.log_z(1.0, "both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="tol must be at least 0"):
        body.contains(body.center, tol=-1.0)
