"""Errors that are not about a single wrong argument."""


class WorkLimitError(RuntimeError):
    """A draw was given up: it needed more work than the stated limit, and nothing uncertified is returned."""
