"""The matrices of noise on prefix sums, from their definitions: nothing of the library."""

import numpy as np
from scipy.linalg import toeplitz


def sums(n):
    """The matrix of prefix sums."""
    return np.tril(np.ones((n, n)))


def root(n):
    """The square root of the matrix of prefix sums, by the recursion of the binomial series."""
    c = np.ones(n)
    for k in range(1, n):
        c[k] = c[k - 1] * (2 * k - 1) / (2 * k)
    return np.tril(toeplitz(c))


def buffers(n, weights, decays):
    """The Toeplitz matrix with coefficients 1, sum_j weights[j] decays[j]^(k-1)."""
    c = [1.0, *(sum(w * r ** (k - 1) for w, r in zip(weights, decays, strict=True)) for k in range(1, n))]
    return np.tril(toeplitz(c))


def tree(n, reduced):
    """The noise of prefix sums as a matrix times that of the nodes: best linear estimates from each node's subtree."""
    nodes = [(h, i) for h in range(n.bit_length()) for i in range(n >> h)]
    place = {node: j for j, node in enumerate(nodes)}
    rows = np.zeros((n, len(nodes)))
    for k in range(1, n + 1):
        start = 0
        for h in reversed(range(k.bit_length())):
            if not k >> h & 1:
                continue
            below = [(g, i) for g, i in nodes if g <= h and start <= i << g and (i + 1) << g <= start + (1 << h)]
            if not reduced:
                below = [(h, start >> h)]
            # Least squares: leaves from noisy sums of them, then the sum of the leaves.
            X = np.array(
                [[float(i << g <= leaf < (i + 1) << g) for leaf in range(start, start + (1 << h))] for g, i in below]
            )
            estimate = np.ones(1 << h) @ np.linalg.pinv(X)
            for node, weight in zip(below, estimate, strict=True):
                rows[k - 1, place[node]] += weight
            start += 1 << h
    return rows


def covariance(noise_rows):
    """The covariance of noise on prefixes that is these rows times independent unit noise."""
    return noise_rows @ noise_rows.T
