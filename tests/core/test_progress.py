"""Progress of long blocks: the same decisions with and without it, and nothing shown unless somebody asks."""

import numpy as np
import pytest

import reticent as rt
from reticent._core._progress import bar, watched

ROUNDS = 3 * (1 << 15) + 5  # parts of 32,768 rounds, and a rest


def _learner() -> rt.learners.Learner:
    return rt.private_learner(rt.Pinball(0.9), rt.Interval(0.0, 1.0), epsilon=1.0, delta=1e-6, seed=3)


def _block() -> tuple[np.ndarray, np.ndarray]:
    return np.ones(ROUNDS), np.random.default_rng(0).uniform(size=ROUNDS)


def test_a_function_is_told_and_decisions_stay_the_same(capfd: pytest.CaptureFixture[str]) -> None:
    told: list[tuple[int, int]] = []
    watched_one, plain = _learner(), _learner()
    a = watched_one.observe_many(*_block(), progress=lambda done, of: told.append((done, of)))
    b = plain.observe_many(*_block())
    assert np.array_equal(a.points, b.points)
    assert np.array_equal(a.starts, b.starts)
    assert told == [(min(k << 15, ROUNDS), ROUNDS) for k in range(5)]
    assert capfd.readouterr() == ("", "")  # silent unless asked


def test_a_bar_is_silent_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    _learner().observe_many(*_block(), progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_bar_on_a_terminal_says_how_far_it_is() -> None:
    console = pytest.importorskip("rich.console").Console(force_terminal=True, record=True, width=80)
    with bar(4, "rounds", console) as update:
        update(completed=3, total=4, refresh=True)
        assert " 75%" in console.export_text()


def test_an_error_in_the_function_leaves_whole_rounds() -> None:
    def stop(done: int, of: int) -> None:
        if done:
            raise KeyboardInterrupt

    learner = _learner()
    with pytest.raises(KeyboardInterrupt):
        learner.observe_many(*_block(), progress=stop)
    assert learner.rounds == 1 << 15
    learner.observe(1.0, 0.5)  # and it goes on
    assert learner.rounds == (1 << 15) + 1


def test_what_is_no_progress_is_refused() -> None:
    with pytest.raises(ValueError, match="progress must be True, False, or a function"):
        list(watched([[1]], "yes"))  # type: ignore[arg-type]
