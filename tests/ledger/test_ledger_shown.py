"""A ledger in a notebook: budgets, what is spent of them, and no more than that."""

from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

import reticent as rt


def test_a_ledger_shows_its_budgets(tmp_path: Path) -> None:
    ledger = rt.Ledger(tmp_path / "privacy.db")
    ledger.add("patients <b>", epsilon=3.0, delta=1e-6)
    ledger.add("visitors", epsilon=1.0, delta=1e-6, window=30.0)
    ledger.spend("patients <b>", rt.privacy.Cost(mu=0.3), note="a secret note")
    shown = ledger._repr_html_()
    standing = ledger.standing("patients <b>")
    assert "patients &lt;b&gt;" in shown
    assert f"{standing.spent:.1%}" in shown
    assert "within any 30 days" in shown
    assert "a secret note" not in shown
    assert f"{standing.left_mu:.4g}" in standing._repr_html_()
