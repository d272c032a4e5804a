"""The envelope around a quartic bound: radial when the mode is well inside the body, else a Gaussian on the body."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.domains._gauss import Envelope, envelope

from ._radial import Radial, radial_envelope, radial_tail

if TYPE_CHECKING:
    from ._quartic import Quartic


class Core(NamedTuple):
    """An envelope of the quartic bound (docs/theory.md, S9): all radial, or Gaussian up to rho1 and radial beyond."""

    gaussian: bool
    share: float  # mass of the Gaussian part over the whole
    kept: float  # the part of the curvature that is left up to rho1
    envelope: Envelope
    radial: Radial
    log_mass: float


def best_core(q: Quartic, quartic: float, z: Array, strength: float, domain: Domain) -> Core | None:
    """Return the envelope of least mass for the bound `q`, whose quartic part is at most `quartic` |w|^4."""
    d = z.size
    precision = q.whiten @ q.whiten
    values = np.linalg.eigvalsh(precision)
    slope = float(np.linalg.norm(q.slope)) * (1 + 1e-9)
    cubic = float(np.linalg.norm(q.cubic, 2)) * (1 + 1e-9)
    kappa = strength / float(values[-1])
    # Masses are those in the chart: a whitened radius has a sphere of directions and a determinant with it.
    sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d) - 0.5 * float(np.log(values).sum())
    body = domain.body
    linear = q.whiten @ q.slope
    radial = radial_envelope(d, q.level, slope, cubic, quartic, kappa)
    best: Core | None = None
    if radial is not None:
        unused = envelope(np.zeros(d), precision, float(values[0]), body)
        best = Core(False, 0.0, 1.0, unused, radial, sphere + radial.log_mass)
        inside = float(z @ z) < 0.25 * domain.radius**2 and slope < 1.0
        if inside and body.ball and radial.rho1 / math.sqrt(float(values[0])) < 0.5 * domain.radius:
            return best
    # Over the body the linear part can fall this far below its value at z, whatever the direction.
    lowest = domain.support(domain.from_chart(linear) - domain.center)
    dip = max(0.0, float(linear @ (z - domain.to_chart(lowest)))) * (1 + 1e-9)
    for rho1 in np.linspace(0.7 * math.sqrt(d), math.sqrt(d) + 5.0, 8):
        kept = 1.0 - 2.0 * rho1 * (cubic + rho1 * quartic)
        if kept <= 0.02:
            break
        tail = radial_tail(d, q.level - dip, 0.5 * kept * rho1 * rho1, kappa, float(rho1))
        if tail is None:
            continue
        P = kept * precision
        near = envelope(P @ z - linear, P, kept * float(values[0]), body)
        core_mass = near.log_mass - q.level + float(linear @ z - 0.5 * z @ P @ z)
        tail_mass = sphere + tail.log_mass
        mass = float(np.logaddexp(core_mass, tail_mass))
        if best is None or mass < best.log_mass:
            best = Core(True, math.exp(core_mass - mass), kept, near, tail, mass)
    return best
