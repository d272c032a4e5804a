"""Exact draws for kinked losses in d >= 2: a quartic bound and two stages of rejection (docs/theory.md, S8-S10)."""

from __future__ import annotations

import math

import numpy as np

from reticent._kernel import kernel
from reticent.domains._gauss import propose

from ._phi import margin
from ._radial import draw_radius, draw_tail


@kernel
def _in_body(body, x):
    if body.ball:
        square = 0.0
        for j in range(x.size):
            square += x[j] * x[j]
        return square <= body.radius * body.radius
    for c in range(body.b.size):
        reach = -body.b[c]
        for j in range(x.size):
            reach += body.A[c, j] * x[j]
        if reach > 0.0:
            return False
    return True


@kernel
def _minorant(a, v):
    return a[0] + v * (a[1] + v * (a[2] + v * (a[3] - v * a[4])))


@kernel
def _largest_gap(a, critical, edge, reach):
    """The largest (v - edge)_+ - p(v) over |v| <= reach, in scaled units."""
    best = 0.0
    for end in (-reach, reach):
        best = max(best, max(end - edge, 0.0) - _minorant(a, end))
    for k in range(critical.size):
        v = critical[k]
        if abs(v) <= reach:  # false for nan
            best = max(best, max(v - edge, 0.0) - _minorant(a, v))
    return best


@kernel
def _gaps_survive(rng, beta, q, vectors, offsets, z, u, s, rates):
    """Toss the coin exp(-beta sum_i [h_i(v) - s p_i(v/s)]); return (kept?, rows read)."""
    d = u.size
    size = 0.0
    for j in range(d):
        size += u[j] * u[j]
    size = math.sqrt(size)
    bins = q.coefficients.shape[0]
    unit = beta * q.jump * q.scale
    total = 0.0
    for k in range(bins):
        rows = q.starts[k + 1] - q.starts[k]
        rates[k] = 0.0
        if rows > 0:
            reach = q.longest[k] * size / q.scale
            low = q.edges[k] / q.scale
            if k < q.inner:
                # h(v) - s p(v/s) <= s [h(v/s) - p(v/s)] + (s - 1) * residual
                gap = s * _largest_gap(q.coefficients[k], q.critical[k], low, reach / s)
                gap += (s - 1.0) * q.edges[k + 1] / q.scale
            else:
                gap = max(reach - low, 0.0)
            rates[k] = gap
            total += rows * gap
    waiting = offsets.size - q.rows
    fresh = 0.0
    if waiting > 0:
        fresh = rates[bins] * size / q.scale
        total += waiting * fresh
    reads = 0
    clock = 0.0
    while True:
        clock += rng.standard_exponential()
        if clock > unit * total:
            return True, reads
        target = rng.random() * total
        k = 0
        while k < bins:
            part = rates[k] * (q.starts[k + 1] - q.starts[k])
            if target < part:
                break
            target -= part
            k += 1
        if k < bins:
            first = q.starts[k]
            i = np.int64(
                q.order[first + min(int(rng.random() * (q.starts[k + 1] - first)), q.starts[k + 1] - first - 1)]
            )
            bound = rates[k]
        elif waiting > 0:
            i = q.rows + min(int(rng.random() * waiting), waiting - 1)
            bound = fresh
        else:
            continue  # rounding of the last partial sum
        reads += 1
        m, v = margin(vectors, offsets, i, z), 0.0
        for j in range(d):
            v += vectors[i, j] * u[j]
        v = v / q.scale if m < 0.0 else -v / q.scale
        gap = max(v - abs(m) / q.scale, 0.0)
        if k < q.inner:
            gap -= s * _minorant(q.coefficients[k], v / s)
        if rng.random() * bound < gap:
            return False, reads


@kernel
def _polynomial(q, w):
    """The quartic lower bound of the potential, less its value at z, at whitened coordinates w."""
    d = w.size
    size = q.quartic.shape[0]
    pair = np.empty(size)
    root2 = math.sqrt(2.0)
    total = q.level
    k = 0
    for i in range(d):
        total += w[i] * (q.slope[i] + 0.5 * w[i])
        for j in range(i, d):
            pair[k] = w[i] * w[j] * (1.0 if i == j else root2)
            k += 1
    for i in range(d):
        t = 0.0
        for k in range(size):
            t += q.cubic[i, k] * pair[k]
        total += t * w[i]
    for i in range(size):
        t = 0.0
        for k in range(i):
            t += q.quartic[i, k] * pair[k]
        total -= pair[i] * (2.0 * t + q.quartic[i, i] * pair[i])
    return total


@kernel
def quartic_draw(rng, beta, lam, body, q, core, vectors, offsets, z, newest_norm, limit, out):
    """Fill `out` with a draw; return (proposals, rows read, accepted?)."""
    d = z.size
    w, u = np.empty(d), np.empty(d)
    rates = np.empty(q.coefficients.shape[0] + 1)
    reads = 0
    radial = core.radial
    for count in range(1, limit + 1):
        if core.gaussian and rng.random() < core.share:
            # Near z: the Gaussian on the body, which is right up to distance rho1.
            weight = propose(rng, core.envelope, body, out)
            if weight == -np.inf or rng.standard_exponential() < -weight:
                continue
            rho = 0.0
            lb = q.level
            for j in range(d):
                u[j] = out[j] - z[j]
            for i in range(d):
                w[i] = 0.0
                for j in range(d):
                    w[i] += q.whiten[i, j] * u[j]
                rho += w[i] * w[i]
                lb += q.slope[i] * w[i]
            lb += 0.5 * core.kept * rho
            rho = math.sqrt(rho)
            if rho > radial.rho1:
                continue
        else:
            if core.gaussian:
                rho, lb = draw_tail(rng, radial, d)
            else:
                rho, lb = draw_radius(rng, radial, d)
            length = 0.0
            for j in range(d):
                w[j] = rng.standard_normal()
                length += w[j] * w[j]
            length = rho / math.sqrt(length)
            for j in range(d):
                w[j] *= length
            for i in range(d):
                u[i] = 0.0
                for j in range(d):
                    u[i] += q.unwhiten[i, j] * w[j]
                out[i] = z[i] + u[i]
            if not _in_body(body, out):
                continue
        # Beyond rho1 the bound at the end of the quartic part is continued by strong convexity along the ray.
        s = max(1.0, rho / radial.rho1)
        square = 0.0
        for i in range(d):
            w[i] /= s
            square += u[i] * u[i]
        bound = s * _polynomial(q, w) + 0.5 * (s - 1.0) / s * beta * lam * square
        if rng.standard_exponential() < bound - lb:
            continue
        rates[rates.size - 1] = newest_norm
        kept, read = _gaps_survive(rng, beta, q, vectors, offsets, z, u, s, rates)
        reads += read
        if kept:
            return count, reads, True
    return limit, reads, False
