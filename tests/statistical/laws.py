"""The laws that draws are held against: naive formulas of the losses and plain quadrature, nothing of the library."""

import numpy as np
from scipy import stats
from scipy.optimize import linprog

import reticent as rt

ALPHA = 1e-6  # significance of every single test
DEEP = 25.0  # log density below its peak where quadrature stops

PHI = {
    "squared": lambda m: m * m / 2,
    "absolute": abs,
    "pinball": lambda m, tau: np.where(m > 0, (1 - tau) * m, -tau * m),
    "hinge": lambda m, margin: np.where(m < margin, margin - m, 0.0),
    "huber": lambda m, w: np.where(abs(m) <= w, m * m / 2, w * abs(m) - w * w / 2),
    "logistic": lambda m: np.log(1 + np.exp(-m)),
}
LABELS = ("hinge", "logistic")


def total(kind, x, a, y, *parameter):
    """The sum of the losses at each row of x, from margins a.x - y or, for labels, y * a.x."""
    out = np.zeros(len(x))
    if a is None or not len(a):
        return out
    if kind == "linear":
        return x @ a.sum(axis=0)
    step = max(1, 4_000_000 // len(x))
    for i in range(0, len(a), step):
        m = x @ a[i : i + step].T
        m = m * y[i : i + step] if kind in LABELS else m - y[i : i + step]
        out += PHI[kind](m, *parameter).sum(axis=1)
    return out


def log_law(kind, a, y, *parameter, beta, lam, center):
    """The log density exp(-beta (sum of losses + lam/2 |x - center|^2)) as a function of rows of points."""
    center = np.asarray(center, float)

    def log_density(x):
        return -beta * (total(kind, x, a, y, *parameter) + 0.5 * lam * ((x - center) ** 2).sum(axis=1))

    return log_density


class Grid:
    """Midpoint quadrature on a window that closes in on the mass; cells outside the body weigh nothing."""

    def __init__(self, log_density, inside, low, high, points):
        low, high = np.array(low, float), np.array(high, float)
        self.dim = low.size
        coarse = {1: 400, 2: 32, 3: 20}[self.dim]
        for _ in range(60):
            x, _ = self._mesh(low, high, coarse)
            f = self._evaluate(log_density, inside, x)
            good = x[f > f.max() - DEEP]
            margin = 2.0 * (high - low) / coarse
            new_low, new_high = np.maximum(low, good.min(axis=0) - margin), np.minimum(high, good.max(axis=0) + margin)
            done = ((new_high - new_low) > 0.7 * (high - low)).all()
            low, high = new_low, new_high
            if done:
                break
        x, self.edges = self._mesh(low, high, points)
        f = self._evaluate(log_density, inside, x)
        weights = np.exp(f - f.max())
        self.points, self.weights = x, weights / weights.sum()

    @staticmethod
    def _mesh(low, high, count):
        edges = [np.linspace(a, b, count + 1) for a, b in zip(low, high, strict=True)]
        middles = [(e[1:] + e[:-1]) / 2 for e in edges]
        return np.stack([m.ravel() for m in np.meshgrid(*middles, indexing="ij")], axis=1), edges

    @staticmethod
    def _evaluate(log_density, inside, x):
        f = np.full(len(x), -np.inf)
        good = inside(x)
        f[good] = log_density(x[good])
        return f

    def p_value(self, draws):
        """The least p-value, times their number, of tests of the coordinates, their sum and of cells."""
        draws = np.asarray(draws, float).reshape(len(draws), self.dim)
        values = [self._coordinate(draws, j) for j in range(self.dim)]
        if self.dim > 1:
            values += [self._projection(draws), self._cells(draws)]
        return min(1.0, len(values) * min(values))

    def _coordinate(self, draws, j):
        weights = self.weights.reshape([len(e) - 1 for e in self.edges])
        marginal = weights.sum(axis=tuple(i for i in range(self.dim) if i != j))
        cdf = np.append(0.0, np.cumsum(marginal))
        return stats.kstest(draws[:, j], lambda t: np.interp(t, self.edges[j], cdf)).pvalue

    def _projection(self, draws):
        # A direction in general position, in units of the window.
        size = np.array([e[-1] - e[0] for e in self.edges])
        c = np.array([1.0, -0.618, 0.414])[: self.dim] / size
        z = self.points @ c
        order = np.argsort(z)
        cdf = np.cumsum(self.weights[order]) - self.weights[order] / 2
        return stats.kstest(draws @ c, lambda t: np.interp(t, z[order], cdf, left=0.0, right=1.0)).pvalue

    def _cells(self, draws):
        """Chi-square over cells between quantiles of the coordinates, cut along the grid."""
        pieces = 8 if self.dim == 2 else 4
        cell, where = np.zeros(len(self.points), int), np.zeros(len(draws), int)
        for j in range(self.dim):
            weights = self.weights.reshape([len(e) - 1 for e in self.edges])
            marginal = weights.sum(axis=tuple(i for i in range(self.dim) if i != j))
            cuts = np.unique(np.searchsorted(np.cumsum(marginal), np.arange(1, pieces) / pieces))
            cuts = self.edges[j][cuts]
            cell = cell * pieces + np.searchsorted(cuts, self.points[:, j])
            where = where * pieces + np.searchsorted(cuts, draws[:, j])
        expected = len(draws) * np.bincount(cell, self.weights, minlength=pieces**self.dim)
        seen = np.bincount(where, minlength=pieces**self.dim)
        return chi_square(seen, expected)


def chi_square(seen, expected, least=8.0):
    """The p-value of counts, with all cells of small expectation put together."""
    rare = expected < least
    if rare.any():
        seen = np.append(seen[~rare], seen[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < least and len(expected) > 1:
            seen = np.append(seen[:-2], seen[-2:].sum())
            expected = np.append(expected[:-2], expected[-2:].sum())
    if len(seen) < 2:
        return 1.0
    statistic = ((seen - expected) ** 2 / expected).sum()
    return stats.chi2.sf(statistic, len(seen) - 1)


def draws(measure, count, seed=0, method=None):
    """The points of `count` draws with one generator."""
    rng = np.random.default_rng(seed)
    return np.array([measure.draw(rng, method=method).point for _ in range(count)])


def two_sample(one, two):
    """The least p-value, times their number, of Kolmogorov-Smirnov tests of coordinates, sum and length."""
    pairs = [(one[:, j], two[:, j]) for j in range(one.shape[1])]
    middle = one.mean(axis=0)
    pairs.append((one.sum(axis=1), two.sum(axis=1)))
    pairs.append((((one - middle) ** 2).sum(axis=1), ((two - middle) ** 2).sum(axis=1)))
    return min(1.0, len(pairs) * min(stats.ks_2samp(a, b).pvalue for a, b in pairs))


def data(kind, rounds, dim, seed=0, towards=None, noise=0.7):
    """Features and targets of a stream whose losses pull towards a point."""
    rng = np.random.default_rng([rounds, dim, seed])
    a = rng.normal(size=(rounds, dim))
    towards = np.full(dim, 0.1) if towards is None else np.asarray(towards, float)
    if kind == "linear":
        return a * 0.3 - towards, None
    y = a @ towards + noise * rng.normal(size=rounds)
    return a, np.where(y > 0, 1.0, -1.0) if kind in LABELS else y


def make_loss(kind, *parameter):
    """The library's loss of this name."""
    return getattr(rt, kind.capitalize())(*parameter)


def custom():
    """The absolute loss as a caller would write it."""
    return rt.Custom(lambda x, row: abs(row[0] @ x - row[1]), lambda x, row: np.sign(row[0] @ x - row[1]) * row[0])


def observe(measure, a, y):
    """Hand over a block of rounds, if there are any."""
    if not len(a):
        return
    if isinstance(measure.loss, rt.Custom):
        measure.observe_many(list(zip(a, y, strict=True)))
    elif y is None:
        measure.observe_many(a)
    else:
        measure.observe_many(a, y)


def law_on(domain, log_density, points):
    """Quadrature over a body described naively: (grid, how draws become points of the grid)."""

    def place(x):
        return x

    plain = log_density
    if isinstance(domain, rt.Simplex):
        # Each coordinate as a share of what the ones before it leave: then every face is a side of the grid.
        n = domain.dim - 1

        def place(x):
            left = 1 - np.cumsum(x[:, :n], axis=1) + x[:, :n]
            return np.clip(x[:, :n] / np.maximum(left, 1e-300), 0.0, 1.0)

        def log_density(v):
            left = np.cumprod(1 - v, axis=1)
            p = v * np.column_stack([np.ones(len(v)), left[:, :-1]])
            return plain(np.column_stack([p, left[:, -1]])) + np.log(1 - v) @ np.arange(n - 1, -1, -1)

        low, high = np.zeros(n), np.ones(n)

        def inside(x):
            return np.ones(len(x), bool)
    elif isinstance(domain, rt.Box):
        low, high = domain.low, domain.high

        def inside(x):
            return np.ones(len(x), bool)
    elif isinstance(domain, rt.Ball) and domain.dim == 2:
        # Polar coordinates, with angles reckoned from the mode on a coarse grid of the disc.
        angle = np.arange(180) * np.pi / 90
        spread = np.sqrt(np.arange(0.5, 16) / 16)[:, None] * domain.radius
        disc = np.stack([spread * np.cos(angle), spread * np.sin(angle)], axis=2).reshape(-1, 2) + domain.center
        x0, y0 = disc[np.argmax(plain(disc))] - domain.center
        origin = np.arctan2(y0, x0)

        def place(x):
            away = x - domain.center
            turn = np.arctan2(away[:, 1], away[:, 0]) - origin
            return np.column_stack([np.hypot(away[:, 0], away[:, 1]), (turn + np.pi) % (2 * np.pi) - np.pi])

        def log_density(x):
            r, turn = x[:, 0], x[:, 1] + origin
            points = np.column_stack([r * np.cos(turn), r * np.sin(turn)]) + domain.center
            return plain(points) + np.log(r)

        low, high = np.array([0.0, -np.pi]), np.array([domain.radius, np.pi])

        def inside(x):
            return np.ones(len(x), bool)
    elif isinstance(domain, rt.Ball):
        low, high = domain.center - domain.radius, domain.center + domain.radius

        def inside(x):
            return ((x - domain.center) ** 2).sum(axis=1) <= domain.radius**2
    else:
        free = [(None, None)] * domain.dim
        solve = [linprog(s * e, domain.A, domain.b, bounds=free).fun for e in np.eye(domain.dim) for s in (1, -1)]
        low, high = np.array(solve[::2]), -np.array(solve[1::2])

        def inside(x):
            return (x @ domain.A.T <= domain.b).all(axis=1)

    return Grid(log_density, inside, low, high, points), place


def check(domain, kind, parameter, a, y, *, beta, lam, method=None, count=2500, points=None, seed=0, off=1.0):
    """The p-value of draws of a measure with temperature `off` times that of the law they are held against."""
    loss = custom() if kind == "custom" else make_loss(kind, *parameter)
    measure = rt.Gibbs(domain, loss, beta=beta * off, lam=lam)
    observe(measure, a, y)
    return against(measure, kind, parameter, a, y, beta=beta, method=method, count=count, points=points, seed=seed)


def _points(domain):
    # Slanted sides cut through cells: they need more of them.
    slanted = isinstance(domain, rt.Polytope)
    return {1: 1500, 2: 400 if slanted else 160, 3: 80 if slanted else 40}[domain.chart_dim]


def against(measure, kind, parameter, a, y, *, beta=None, method=None, count=2500, points=None, seed=0):
    """The p-value of draws of a measure against the law of the rounds given."""
    domain = measure.domain
    plain = "absolute" if kind == "custom" else kind
    beta = measure.beta if beta is None else beta
    density = log_law(plain, a, y, *parameter, beta=beta, lam=measure.lam, center=domain.center)
    grid, place = law_on(domain, density, points or _points(domain))
    return grid.p_value(place(draws(measure, count, seed, method)))


PARAMETERS = {"pinball": (0.2,), "hinge": (1.0,), "huber": (0.5,)}
KINDS = ("linear", "squared", "absolute", "pinball", "hinge", "huber", "logistic")
