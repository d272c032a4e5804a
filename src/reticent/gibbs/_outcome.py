"""How a draw made by a kernel can end."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int64]

DRAWN = 0
FAR = 1
"""The sampler has to look after what it knows of the past; the same call goes on after that."""
GIVEN_UP = 2
"""The draw needs more proposals than it may take."""
