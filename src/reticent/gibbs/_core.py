"""The envelope around a quartic bound: radial when the mode is well inside the body, else a Gaussian on the body."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from reticent._check import Array
from reticent.domains import Domain
from reticent.domains._gauss import Envelope, envelope

from ._radial import Radial, radial_envelope, radial_tail

if TYPE_CHECKING:
    from ._quartic import Quartic


class Norms(NamedTuple):
    """What an envelope needs to know of a quartic bound, apart from its slope."""

    cubic: float
    quartic: float
    kappa: float  # strong convexity of the potential beside its largest curvature at the bound
    precision: Array
    floor: float  # smallest eigenvalue of the precision
    sphere: float  # log volume of the unit sphere, with the determinant of the whitening


class Core(NamedTuple):
    """An envelope of the quartic bound (docs/theory.md, S9): all radial, or Gaussian up to rho1 and radial beyond."""

    gaussian: bool
    share: float  # mass of the Gaussian part over the whole
    kept: float  # the part of the curvature that is left up to rho1
    envelope: Envelope
    radial: Radial
    log_mass: float


def norms_of(q: Quartic, quartic: float, strength: float) -> Norms:
    """Return the norms of a bound whose quartic part is at most `quartic` |w|^4, for a strongly convex potential."""
    d = q.slope.size
    precision = q.whiten @ q.whiten
    values = np.linalg.eigvalsh(precision)
    sphere = math.log(2.0) + 0.5 * d * math.log(math.pi) - math.lgamma(0.5 * d)
    return Norms(
        cubic=float(np.linalg.norm(q.cubic, 2)) * (1 + 1e-9),
        quartic=quartic,
        kappa=strength / float(values[-1]) * (1 - 1e-9),
        precision=precision,
        floor=float(values[0]) * (1 - 1e-9),
        sphere=sphere - 0.5 * float(np.log(values).sum()),
    )


def best_core(q: Quartic, norms: Norms, z: Array, domain: Domain) -> Core | None:
    """Return the envelope of least mass, or None if every tail is too heavy."""
    d = z.size
    root = math.sqrt(d)
    # Beyond sqrt(d) + 6 there is next to no mass; before 0.6 sqrt(d) a tail would be heavy.
    radial = _least(_radial_core(q, norms, float(rho1)) for rho1 in np.linspace(0.6 * root, root + 6.0, 24))
    deep = (
        radial is not None
        and domain.body.ball
        and float(np.linalg.norm(z)) + radial.radial.rho1 / math.sqrt(norms.floor) < domain.radius
    )
    if deep:
        return radial
    gaussian = _least(
        _gaussian_core(q, norms, z, domain, float(rho1)) for rho1 in np.linspace(0.7 * root, root + 5.0, 8)
    )
    return _least(core for core in (radial, gaussian) if core is not None)


def same_core(q: Quartic, norms: Norms, z: Array, domain: Domain, core: Core) -> Core | None:
    """Return an envelope of the same kind and end as `core`, for a bound whose slope has changed."""
    rho1 = core.radial.rho1
    found = _gaussian_core(q, norms, z, domain, rho1) if core.gaussian else _radial_core(q, norms, rho1)
    return found if math.isfinite(found.log_mass) else None


def _least(cores: Iterator[Core]) -> Core | None:
    finite = [core for core in cores if math.isfinite(core.log_mass)]
    return min(finite, key=lambda core: core.log_mass) if finite else None


def _radial_core(q: Quartic, norms: Norms, rho1: float) -> Core:
    slope = float(np.linalg.norm(q.slope)) * (1 + 1e-9)
    radial = radial_envelope(q.slope.size, q.level, slope, norms.cubic, norms.quartic, norms.kappa, rho1)
    nothing = Envelope(0, np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1), 0.0, -math.inf)
    return Core(False, 0.0, 1.0, nothing, radial, norms.sphere + radial.log_mass)


def _gaussian_core(q: Quartic, norms: Norms, z: Array, domain: Domain, rho1: float) -> Core:
    d = z.size
    kept = max(0.02, 1.0 - 2.0 * rho1 * (norms.cubic + rho1 * norms.quartic))
    linear = q.whiten @ q.slope
    # Over the body the linear part can fall this far below its value at z, whatever the direction.
    lowest = domain.to_chart(domain.support(domain.from_chart(linear) - domain.center))
    dip = max(0.0, float(linear @ (z - lowest))) * (1 + 1e-9)
    tail = radial_tail(d, q.level - dip, 0.5 * kept * rho1 * rho1, norms.kappa, rho1)
    P = kept * norms.precision
    near = envelope(P @ z - linear, P, kept * norms.floor, domain.body, True)
    core_mass = near.log_mass - q.level + float(linear @ z - 0.5 * z @ P @ z)
    mass = float(np.logaddexp(core_mass, norms.sphere + tail.log_mass))
    # A bend that is used up before rho1 leaves no envelope there.
    usable = kept > 0.02 and math.isfinite(mass)
    share = math.exp(core_mass - mass) if usable else 0.0
    return Core(True, share, kept, near, tail, mass if usable else math.inf)
