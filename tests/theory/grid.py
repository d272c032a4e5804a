"""P-COMW with b = 1 and M = 1 on a fine grid of [-R, R], where laws and coins are sums."""

import numpy as np


class Grid:
    """The measures and the coin of the algorithm; losses are arrays over the grid."""

    def __init__(self, beta: float, lam: float, phi: float, p: float, radius: float, points: int) -> None:
        self.x = radius * ((np.arange(points) + 0.5) / points * 2 - 1)
        self.beta, self.lam, self.phi, self.p = beta, lam, phi, p

    def law(self, total: np.ndarray) -> np.ndarray:
        v = -self.beta * (total + self.lam * self.x**2 / 2)
        w = np.exp(v - v.max())
        return w / w.sum()

    def stay(self, loss: np.ndarray, mu: np.ndarray) -> np.ndarray:
        ratio = np.exp(self.beta * (loss[None, :] - loss[:, None])) / self.phi
        return (1 - self.p) * np.clip(ratio, self.phi**-2, 1) @ mu
