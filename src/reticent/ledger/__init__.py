"""Who has spent how much: budgets of populations, and entries that are made before anything is released."""

from reticent.ledger._chain import Record, check_chain
from reticent.ledger._export import read_export
from reticent.ledger._ledger import Entry, Ledger, Standing
from reticent.ledger._population import Population

__all__ = ["Entry", "Ledger", "Population", "Record", "Standing", "check_chain", "read_export"]
