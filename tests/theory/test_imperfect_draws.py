"""P7 and P8: draws that are not exact, and epochs that restart, enumerated on bodies of three points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

BETA, P, PHI, N = 0.8, 0.2, 1.4, 3


def transcripts(losses: np.ndarray, nudge: np.ndarray, tau: float) -> tuple[dict[tuple[int, ...], float], float]:
    """The law of (x_1, s_1, x_2, s_2, ...) with one auxiliary draw per looked-at coin, and the expected draws.

    A draw from mu is replaced by one from (1 - tau) mu + tau nudge: within tau of mu in total variation.
    """
    points = losses.shape[1]
    sums = np.vstack([np.zeros(points), np.cumsum(losses, axis=0)])
    mu = np.exp(-BETA * sums)
    mu /= mu.sum(axis=1, keepdims=True)
    used = (1 - tau) * mu + tau * nudge
    floor = PHI**-2
    law = {(x,): float(used[0][x]) for x in range(points)}
    draws = 1.0
    for k, loss in enumerate(losses):
        coin = np.clip(np.exp(BETA * (loss[None, :] - loss[:, None])) / PHI, floor, 1) @ used[k + 1]
        following: dict[tuple[int, ...], float] = {}
        for path, chance in law.items():
            stay = (1 - P) * coin[path[-1]]
            draws += chance * ((1 - P) * (1 - floor) + (1 - stay))
            for y in range(points):
                following[(*path, 1, y)] = chance * (1 - stay) * float(used[k + 1][y])
            following[(*path, 0, path[-1])] = chance * stay
        law = following
    return law, draws


def distance(one: dict[tuple[int, ...], float], two: dict[tuple[int, ...], float]) -> float:
    return sum(abs(one[path] - two[path]) for path in one) / 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tau", [1e-4, 0.01, 0.2])
def test_transcripts_part_at_most_once_per_draw(seed: int, tau: float) -> None:
    rng = np.random.default_rng(seed)
    losses = rng.uniform(-1, 1, (N, 3))
    nudge = np.eye(3)[rng.integers(3)]
    exact, draws = transcripts(losses, nudge, 0.0)
    rough, draws_rough = transcripts(losses, nudge, tau)
    assert sum(rough.values()) == pytest.approx(1)
    apart = distance(exact, rough)
    assert apart <= tau * min(draws, draws_rough)
    for total in (draws, draws_rough):
        assert total <= 1 + N * (P + (1 - P) * (1 - PHI**-2) * 2)
    assert apart > 0.5 * tau * (1 - max(nudge @ np.ones(3) / 3, 1 / 3))  # not a bound with nothing to it
    span = max(np.ptp(loss) for loss in losses)
    for value, most in ((lambda path: sum(path[1::2]), N), (lambda path: regret(path, losses), N * span)):
        means = [sum(chance * value(path) for path, chance in law.items()) for law in (exact, rough)]
        assert abs(means[0] - means[1]) <= most * tau * draws


def regret(path: tuple[int, ...], losses: np.ndarray) -> float:
    return float(sum(loss[x] for loss, x in zip(losses, path[::2], strict=False)))


def test_one_draws_error_alone_is_not_a_bound() -> None:
    # Negative control: tau without the number of draws. Every draw is sent to one point.
    losses = np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [1.0, 0.0, -1.0]])
    exact, _ = transcripts(losses, np.array([1.0, 0, 0]), 0.0)
    rough, _ = transcripts(losses, np.array([1.0, 0, 0]), 0.01)
    assert distance(exact, rough) > 0.01


def test_epochs_need_a_guarantee_given_every_prefix() -> None:
    # An epoch announces with probability delta that it will publish its data: (0, delta)-private by itself.
    delta, epochs = 0.01, 6
    # Waiting for an announcement and changing a round then wins with probability 1 - (1 - delta)^epochs.
    success = 0.0
    for announced in itertools.product((0, 1), repeat=epochs):
        chance = np.prod([delta if a else 1 - delta for a in announced])
        success += float(chance) * any(announced)
    assert success == pytest.approx(1 - (1 - delta) ** epochs)
    assert delta < success <= epochs * delta
    # A round fixed in advance lies in one epoch: delta.
    fixed = sum(
        float(np.prod([delta if a else 1 - delta for a in announced])) * announced[2]
        for announced in itertools.product((0, 1), repeat=epochs)
    )
    assert fixed == pytest.approx(delta)


@pytest.mark.parametrize("seed", range(5))
def test_regret_adds_up_over_epochs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    losses, played = rng.uniform(-1, 1, (14, 3)), rng.integers(0, 3, 14)
    cuts = [0, 2, 6, 14]
    paid = losses[np.arange(14), played]
    whole = paid.sum() - losses.sum(axis=0).min()
    parts = sum(paid[a:b].sum() - losses[a:b].sum(axis=0).min() for a, b in itertools.pairwise(cuts))
    assert whole <= parts + 1e-12
