"""Rounds over a finite set, compiled: weighted draws with coins, and perturbed leaders, fresh or lazy.

`vectors` hold what each expert loses in each round, at least 0; `after[i]` becomes the expert after round i. Random
numbers are drawn at places that depend on the rounds alone.
"""

from __future__ import annotations

import math

import numpy as np

from reticent._core._exact import add_exactly
from reticent._core._fine import arrival_time, standard_exponential
from reticent._core._kernel import kernel


@kernel
def least(values):
    """Return the first place of the smallest value."""
    best = 0
    for j in range(1, values.size):
        if values[j] < values[best]:
            best = j
    return best


@kernel
def race(rng, beta, sums):
    """Draw j with probability proportional to exp(-beta sums[j]): the first to arrive of clocks with these rates.

    In logarithms, and against the smallest sum, so that no weight overflows or vanishes.
    """
    base = sums[least(sums)]
    best, first = 0, math.inf
    for j in range(sums.size):
        arrival = math.log(arrival_time(rng)) + beta * (sums[j] - base)
        if arrival < first:
            best, first = j, arrival
    return best


@kernel
def dartboard(rng, beta, p, batch, budget, vectors, sums, low, state, own, after):
    """Keep the expert with probability (1-p) exp(-beta loss of the batch) after each batch, else draw from the weights.

    `state` holds the expert, the rounds of the open batch and the draws made; `own` what the expert lost in it.
    After `budget` draws the expert stays for good. What rounding has left of `sums` is in `low` (docs/theory, Q12).
    """
    for i in range(len(vectors)):
        if state[2] < budget:
            for j in range(sums.size):
                add_exactly(sums, low, j, vectors[i, j])
            add_exactly(own[:1], own[1:], 0, vectors[i, state[0]])
            state[1] += 1
            if state[1] == batch:
                forced = rng.random() < p
                kept = standard_exponential(rng) >= beta * own[0]
                if forced or not kept:
                    state[0] = race(rng, beta, sums)
                    state[2] += 1
                state[1] = 0
                own[:] = 0.0
        after[i] = state[0]


@kernel
def perturbed(rng, rate, flat, vectors, sums, after):
    """Follow the leader of the sums plus fresh noise: uniform on [0, 1/rate) if `flat`, else two-sided exponential."""
    for i in range(len(vectors)):
        best, lowest = 0, math.inf
        for j in range(sums.size):
            sums[j] += vectors[i, j]
            noise = rng.random() if flat else rng.standard_exponential() - rng.standard_exponential()
            value = sums[j] + noise / rate
            if value < lowest:
                best, lowest = j, value
        after[i] = best


@kernel
def reflecting(rng, rate, vectors, sums, noise, expert, after):
    """Follow the leader of sums plus noise, where the noise makes up for a round, or else is turned to its negative.

    Noise less round is taken with the chance of Metropolis, the ratio of the densities exp(-rate |noise|_1).
    """
    n = sums.size
    for i in range(len(vectors)):
        longer = 0.0
        for j in range(n):
            longer += abs(noise[j] - vectors[i, j]) - abs(noise[j])
        if rng.standard_exponential() >= rate * longer:
            # Sums plus noise are what they were: so is the leader.
            for j in range(n):
                sums[j] += vectors[i, j]
                noise[j] -= vectors[i, j]
        else:
            best, lowest = 0, math.inf
            for j in range(n):
                sums[j] += vectors[i, j]
                noise[j] = -noise[j]
                if sums[j] + noise[j] < lowest:
                    best, lowest = j, sums[j] + noise[j]
            expert = best
        after[i] = expert
    return expert


@kernel
def gridded(side, vectors, grid, noise, expert, after):
    """Follow the leader of the grid point that lies up to `side` above the sums in each coordinate.

    `noise` is the grid point less the sums, in [0, side); a coordinate of the grid point moves when it runs out.
    """
    for i in range(len(vectors)):
        moved = False
        for j in range(grid.size):
            noise[j] -= vectors[i, j]
            if noise[j] < 0.0:
                step = side * math.ceil(-noise[j] / side)
                noise[j] += step
                grid[j] += step
                moved = moved or j == expert
        # Coordinates move upwards only: the leader stays unless its own did.
        if moved:
            expert = least(grid)
        after[i] = expert
    return expert


@kernel
def share(rng, weights):
    """Draw j with probability proportional to weights[j], at least 0 each."""
    total = 0.0
    for j in range(weights.size):
        total += weights[j]
    left = rng.random() * total
    last = 0
    for j in range(weights.size):
        if weights[j] > 0.0:
            last = j
            if left < weights[j]:
                return j
            left -= weights[j]
    return last


@kernel
def draw_along(rng, places, points, chances, expert, after):
    """Keep an expert of law `chances` while these change: after round places[k] they are points[k].

    It stays with probability min(1, new/old) of its own chance, else one is drawn from what others have gained: its law
    is that of the new chances, and no two such laws can share more. `chances` is left at the last of them.
    """
    n, start = chances.size, 0
    gained = chances.copy()
    for k in range(places.size):
        for i in range(start, places[k]):
            after[i] = expert
        start = places[k]
        if rng.random() * chances[expert] >= points[k, expert]:
            for j in range(n):
                gained[j] = max(points[k, j] - chances[j], 0.0)
            expert = share(rng, gained)
        for j in range(n):
            chances[j] = points[k, j]
    for i in range(start, after.size):
        after[i] = expert


@kernel
def proportions(beta, heights):
    """Return rows in proportion to exp(beta heights), each of sum 1; heights are taken from the highest down."""
    found = np.empty_like(heights)
    for i in range(heights.shape[0]):
        top = heights[i].max()
        total = 0.0
        for j in range(heights.shape[1]):
            found[i, j] = math.exp(beta * (heights[i, j] - top))
            total += found[i, j]
        for j in range(heights.shape[1]):
            found[i, j] /= total
    return found


@kernel
def restarting(rng, rate, epoch, changes, budget, vectors, sums, state, after):
    """Follow the leader of sums less noise; after `changes` changes or `epoch` rounds start from fresh noise.

    `sums` start at minus the noise. `state` holds the expert, the rounds and the changes of the epoch, and the switches
    of the run; after `budget` switches the expert stays for good.
    """
    for i in range(len(vectors)):
        if state[3] < budget:
            for j in range(sums.size):
                sums[j] += vectors[i, j]
            leader = least(sums)
            state[1] += 1
            if leader != state[0]:
                state[2] += 1
            if state[1] == epoch or state[2] == changes:
                for j in range(sums.size):
                    sums[j] = -rng.standard_exponential() / rate
                leader = least(sums)
                state[1], state[2] = 0, 0
            if leader != state[0]:
                state[0] = leader
                state[3] += 1
        after[i] = state[0]
