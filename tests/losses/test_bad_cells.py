"""What is refused of a block is named by one cell and its place: nothing of the rows of others is in a message."""

import numpy as np
import pytest

import reticent as rt

ROWS = np.random.default_rng(0).normal(size=(40_000, 3)) * 0.1
LABELS = np.ones(len(ROWS))


@pytest.fixture(scope="module")
def learner():
    return rt.make(rt.planning.plan_budgeted(rt.Ball(3), 100_000, 1.0, 20), rt.Logistic())


def spoiled(value, row=30_000, column=1):
    cells = ROWS.astype(object)
    cells[row, column] = value
    return cells


BLOCKS = {
    "text": (lambda: spoiled("n/a"), r"got 'n/a' at index \(30000, 1\)$"),
    "text in lists": (lambda: spoiled("n/a").tolist(), r"got 'n/a' at index \(30000, 1\)$"),
    "long text": (lambda: spoiled("x" * 5000), r"got 'x{59}\.\.\. at index \(30000, 1\)$"),
    "large number": (lambda: spoiled(10**400).tolist(), r"does not fit into double precision at index \(30000, 1\)$"),
    "complex": (lambda: ROWS.astype(complex), r"got an array of complex128$"),
    "uneven": (lambda: [*ROWS[:500].tolist(), [0.1]], r"got rows of different lengths: 3 at index 0, 1 at index 500$"),
    "missing": (lambda: spoiled(None), r"features must be finite, got nan at index \(30000, 1\)$"),
    "masked": (lambda: np.ma.masked_array(ROWS, mask=ROWS > 0.3), r"got a masked array; put a public number"),
    "masked rows": (lambda: [*np.ma.masked_array(ROWS[:500], mask=ROWS[:500] > 0.2)], r"got a masked array"),
    "masked row": (lambda: [ROWS[0], np.ma.masked_array(ROWS[1], mask=[True, False, False])], r"got a masked array"),
    "masked late": (lambda: [[0.1, 0.1, 0.1], np.ma.masked_array(ROWS[1], mask=True)], r"got a masked array"),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_one_cell_is_named(learner, name):
    make, words = BLOCKS[name]
    block = make()
    with pytest.raises(ValueError, match=words) as error:
        learner.observe_many(block, LABELS[: len(block)])
    assert len(str(error.value)) < 200
    assert learner.rounds == 0


def test_a_row_far_behind_is_found(learner):
    labels = LABELS.copy()
    labels[39_000] = 3.0
    with pytest.raises(ValueError, match=r"of the rows from row 32768 on.*got 3\.0 in row 6232"):
        learner.observe_many(ROWS, labels)
    with pytest.raises(ValueError, match=r"got 'yes' at index 0$"):
        learner.observe_many(ROWS, ["yes"] * len(ROWS))


def test_masks_are_found_by_trackers_too():
    tracker = rt.PrivateMean(0.0, 1.0, epsilon=1.0)
    for values in ([np.ma.masked_array([0.1, 0.2], mask=[True, False])], np.ma.masked_array([0.1], mask=[True])):
        with pytest.raises(ValueError, match="must be real numbers"):
            tracker.update_many(values)
    assert tracker.rounds == 0


def test_lists_of_numbers_and_of_arrays_are_taken_as_ever(learner):
    fresh = rt.make(learner.plan, learner.loss)
    fresh.observe_many([*ROWS[:50]], [*LABELS[:50]])
    fresh.observe_many([tuple(row) for row in ROWS[:50].tolist()], LABELS[:50].tolist())
    fresh.observe(ROWS[0].tolist(), 1)
    assert fresh.rounds == 101
