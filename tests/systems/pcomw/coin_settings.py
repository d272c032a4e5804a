"""Settings of coins under which compiled and plain walks are held against each other."""

# forced switches, phi, batch, auxiliary draws, budget
COINS = [
    (0.0, 1.3, 1, 1, None),
    (0.1, 1.05, 4, 3, 40),
    (1.0, 1.0, 1, 1, None),
    (0.0, 1e150, 3, 1, 90),
    (0.3, 1e4, 1, 2, 0),
]
