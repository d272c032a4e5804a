"""The command line: plan, run, compare, tables, audit, demo and report, without writing Python."""

from reticent.cli._main import main

__all__ = ["main"]
