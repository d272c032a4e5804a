"""Portfolios whose trades cost money: exact wealth, the best constant portfolio in hindsight, rounds for a learner."""

from reticent.lab.portfolio._hindsight import Constant, best_constant
from reticent.lab.portfolio._rounds import lipschitz, rounds
from reticent.lab.portfolio._trade import kept
from reticent.lab.portfolio._wealth import Wealth, buy_and_hold, wealth

__all__ = ["Constant", "Wealth", "best_constant", "buy_and_hold", "kept", "lipschitz", "rounds", "wealth"]
