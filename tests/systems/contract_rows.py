"""Streams for the contract test: three kinds of rounds for any loss over any domain, within a Lipschitz limit."""

import numpy as np

from reticent.losses import Custom, GeneralisedLinear, Linear
from reticent.losses._label import Label

KINDS = ("steady", "drifting", "alternating")


def directions(kind, rounds, dim, rng):
    """Unit vectors: around one direction, around one that turns, or around one that flips every round."""
    noise = rng.normal(size=(rounds, dim)) / np.sqrt(dim)
    main = np.zeros((rounds, dim))
    if kind == "steady":
        main[:, 0] = 1.0
    elif kind == "drifting":
        angle = np.linspace(0.0, 2 * np.pi, rounds)
        main[:, 0] += np.cos(angle)
        main[:, -1] += np.sin(angle)
    else:
        main[:, 0] = np.where(np.arange(rounds) % 2, 1.0, -1.0)
    rows = main + noise
    return rows / np.linalg.norm(rows, axis=1)[:, None]


def stream(kind, domain, loss, lipschitz, rounds, seed, scale=1.0):
    """Return the data of a block of rounds, as `observe_many` takes it."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    rows = directions(kind, rounds, domain.dim, rng)
    if isinstance(loss, Custom):
        return ([domain.project(domain.center + domain.radius * row) for row in rows],)
    if isinstance(loss, Linear):
        data = (rows,)
    elif isinstance(loss, Label):
        data = (rows * scale, np.where(rng.random(rounds) < 0.8, 1.0, -1.0))
    else:
        data = (rows * scale, scale * rng.uniform(-1.0, 1.0, size=rounds))
    steep = loss.lipschitz(domain, *data).max()
    while steep > lipschitz:
        factor = 0.9 * lipschitz / steep if isinstance(loss, Linear) else 0.7
        targets = data[1:] if isinstance(loss, Label) else tuple(part * factor for part in data[1:])
        data = (data[0] * factor, *targets)
        steep = loss.lipschitz(domain, *data).max()
    return data


def first_rows(data, start, stop):
    return tuple(part[start:stop] for part in data)


def one_row(data, i):
    return tuple(part[i] for part in data)


def bad_blocks(domain, loss, lipschitz, good):
    """Blocks of which some round must be refused."""
    if isinstance(loss, Custom):
        yield ([object()],)
        return
    rows = np.array(good[0][:6])
    for change in ("nan", "shape", "steep"):
        bad = rows.copy()
        if change == "nan":
            bad[3, 0] = np.nan
        elif change == "shape":
            bad = np.hstack([bad, bad])
        else:
            bad[3] *= 1e6 * lipschitz / max(np.abs(bad[3]).max(), 1e-12)
        yield (bad, *(part[:6] for part in good[1:]))
    if isinstance(loss, GeneralisedLinear):
        yield (rows, np.array(good[1][:5]))
