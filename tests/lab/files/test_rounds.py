"""From columns to rounds: public bounds only, and the slope that they imply."""

from datetime import date

import numpy as np
import pytest

from reticent.domains import Ball, Experts, Interval
from reticent.lab.files import Layout, open_table
from reticent.losses import Absolute, Hinge, Huber, Linear, Logistic, Pinball, Squared


def bind(tmp_path, loss, **layout):
    path = tmp_path / "data.csv"
    path.write_text("age,income,y\n30,1e5,1\n90,-5,0\n")
    with open_table(str(path)) as table:
        rounds = Layout(**layout).bind(table, loss)
        return rounds, rounds.block(np.concatenate([part.values for part in table.parts(rounds.columns)]))


BOUNDS = {"age": (0.0, 60.0), "income": (0.0, 2e5)}


def test_bounds_scale_and_cut_off(tmp_path):
    rounds, (x, y) = bind(tmp_path, Logistic(), features=("age", "2"), target="y", intercept=True, bounds=BOUNDS)
    np.testing.assert_allclose(x * np.sqrt(3), [[0.0, 0.0, 1.0], [1.0, -1.0, 1.0]])
    assert y.tolist() == [1.0, -1.0]
    assert rounds.decision == ("age", "income", "intercept")
    assert (np.linalg.norm(x, axis=1) <= 1.0 + 1e-12).all()


def test_without_bounds_values_are_as_they_are(tmp_path):
    rounds, (x, _) = bind(tmp_path, Logistic(), features=("age", "income"), target="y")
    assert x.tolist() == [[30.0, 1e5], [90.0, -5.0]]
    assert rounds.steepest(Ball(2), Logistic()) is None


def test_no_features_is_the_constant(tmp_path):
    rounds, (x, y) = bind(tmp_path, Pinball(0.9), target="age", bounds={"age": (0.0, 60.0)})
    assert (x.tolist(), y.tolist()) == ([[1.0], [1.0]], [30.0, 60.0])
    assert rounds.decision == ("age",)
    assert rounds.steepest(Interval(0, 60), Pinball(0.9)) == pytest.approx(0.9)


def test_gradients_keep_their_units(tmp_path):
    bounds = {"age": (0.0, 60.0), "income": (0.0, 80.0)}
    rounds, (g,) = bind(tmp_path, Linear(), features=("age", "income"), bounds=bounds)
    assert g.tolist() == [[30.0, 80.0], [60.0, 0.0]]
    assert rounds.steepest(Ball(2), Linear()) == pytest.approx(100.0)
    assert rounds.steepest(Experts(2), Linear()) == pytest.approx(80.0)


@pytest.mark.parametrize("loss", [Logistic(), Hinge(), Absolute(), Huber(0.5), Squared(), Pinball(0.8)])
@pytest.mark.parametrize("domain", [Ball(2), Ball(2, 3.0)])
def test_no_round_within_bounds_is_steeper_than_implied(tmp_path, loss, domain):
    rng = np.random.default_rng(3)
    label = isinstance(loss, Logistic | Hinge)
    bounds = BOUNDS if label else BOUNDS | {"y": (-2.0, 2.0)}
    rounds, _ = bind(tmp_path, loss, features=("age", "income"), target="y", bounds=bounds)
    limit = rounds.steepest(domain, loss)
    values = np.column_stack([rng.choice([-1e9, 0, 30, 60, 1e9], 200), rng.choice([-1e9, 0, 2e5], 200), np.ones(200)])
    values[:, 2] = rng.choice([1.0, -1.0], 200) if label else rng.choice([-9.0, 0.0, 9.0], 200)
    constants = loss.lipschitz(domain, *rounds.block(values))
    assert constants.max() <= limit * (1 + 1e-12)
    assert constants.max() >= 0.99 * limit


def test_no_row_of_numbers_dates_and_categories_is_longer_than_one(tmp_path):
    path = tmp_path / "more.csv"
    cells = ["-5,Paris,1900-01-01,1", "1e9,Rome,2999-01-01,0", ",,,1", "60,Lyon,2024-07-01 06:00,0", "30,?,n/a,1"]
    path.write_text("age,city,since,y\n" + "\n".join(cells) + "\n")
    layout = Layout(
        ("age", "city", "since"),
        "y",
        True,
        {"age": (0.0, 60.0), "since": (date(2024, 1, 1), date(2025, 1, 1))},
        None,
        {"city": ("Paris", "Lyon", "other")},
        {"age": "30", "city": "other", "since": "2024-07-02"},
    )
    with open_table(str(path)) as table:
        rounds = layout.bind(table, Logistic())
        x, _ = rounds.block(np.concatenate([part.values for part in table.parts(rounds.columns)]))
    assert rounds.decision == ("age", "city=Paris", "city=Lyon", "city=other", "since", "intercept")
    lengths = np.linalg.norm(x, axis=1)
    assert lengths.max() == pytest.approx(1.0)
    assert lengths.min() >= 0.7  # each row has its category and its intercept
    np.testing.assert_allclose(x[:, 1:4].sum(axis=1), 0.5)
    assert rounds.steepest(Ball(6, 8.0), Logistic()) <= 1.0
    assert rounds.scaling == (
        "public bounds: age from 0 to 60, city one of Paris, Lyon, other, since from 2024-01-01 to 2025-01-01"
    )


@pytest.mark.parametrize(
    ("loss", "layout", "said"),
    [
        (Logistic(), {"features": ("age",)}, "a target is expected"),
        (Linear(), {"target": "y"}, "must have features"),
        (Linear(), {"features": ("age",), "target": "y"}, "leave --target"),
        (Logistic(), {"features": ("age", "1"), "target": "y"}, "got column 'age' twice"),
        (Logistic(), {"features": ("y",), "target": "y"}, "must not be one of the features"),
        (Absolute(), {"target": "y", "labels": ("0", "1")}, "without labels"),
        (Logistic(), {"features": ("agee",), "target": "y"}, "did you mean 'age'"),
        (
            Logistic(),
            {"features": ("age", "income"), "target": "y", "bounds": {"age": (0.0, 1.0)}},
            "got none for income",
        ),
        (Logistic(), {"features": ("age",), "target": "y", "bounds": {"age": (1.0, 0.0)}}, "LOW below HIGH"),
        (Logistic(), {"features": ("age",), "target": "y", "bounds": {"income": (0.0, 1.0)}}, "features or the target"),
        (
            Logistic(),
            {"features": ("age",), "target": "y", "bounds": {"age": (0.0, 1.0), "y": (0.0, 1.0)}},
            "for labels",
        ),
        (Logistic(), {"features": ("age",), "target": "y", "categories": {"income": ("a", "b")}}, "for features, got"),
        (Linear(), {"features": ("age",), "categories": {"age": ("a", "b")}}, "gradients are numbers"),
        (
            Logistic(),
            {"features": ("age",), "target": "y", "bounds": {"age": (0.0, 1.0)}, "categories": {"age": ("a", "b")}},
            "bounds or categories, got both",
        ),
        (
            Logistic(),
            {"features": ("age",), "target": "y", "bounds": {"age": (0.0, 1.0)}, "unit_rows": True},
            "leave --bounds and --categories out, or --unit-rows",
        ),
        (
            Logistic(),
            {"features": ("age",), "target": "y", "bounds": {"age": (0.0, 1.0)}, "fill": {"age": "n/a"}},
            "fill must be a value of its column, got 'n/a'",
        ),
        (
            Logistic(),
            {"features": ("age",), "target": "y", "bounds": {"age": (0.0, 1.0)}, "fill": {"y": "1"}},
            "fill must be for features",
        ),
    ],
)
def test_layouts_that_make_no_sense(tmp_path, loss, layout, said):
    with pytest.raises(ValueError, match=said):
        bind(tmp_path, loss, **layout)
