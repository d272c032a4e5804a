"""Estimators: the learners in the interfaces of other libraries, one package for each.

They are imported by name, `reticent.estimators.river` or `reticent.estimators.sklearn`, since each needs its library.
"""
