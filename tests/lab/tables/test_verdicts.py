"""The sentences below a table follow from its numbers."""

import pytest
from cells import a_cell

from reticent._core import _names as names
from reticent.lab.tables import REGIMES, judged, markdown, short_line, verdict
from reticent.lab.tables._levels import levels_of


def row(regime, rival, *pairs, ours=names.PCOMW, scale="runnable"):
    """Return cells of a row of the paper: certificates and measured regret of P-COMW and a rival at several points."""
    cells = []
    for k, (mine, theirs) in enumerate(pairs):
        where = {"regime": regime, "variable": REGIMES[regime].variable, "value": 0.25 + k, "scale": scale}
        cells += [a_cell(ours, *mine, **where), a_cell(rival, *theirs, **where)]
    return cells


WON, LOST = ((100.0, 50.0), (200.0, 90.0)), ((200.0, 90.0), (100.0, 50.0))


def said(cells):
    return "\n".join(verdict(levels_of(cells)))


def test_the_first_sentence_counts_the_points_where_the_paper_is_right():
    cells = row("1.2", names.FLAT, WON, WON) + row("1.3", names.OBJECTIVE_ANY, WON, LOST)
    first = verdict(levels_of(cells))[0]
    assert first == "The paper's order shows by certificate at 3 of 4 points; as measured at 3 of 4 points."


def test_at_large_T_the_machine_is_a_reason_too():
    machine = "at large T what the machine and the public grid add"
    assert machine in said(row("1.6", names.DP_FTRL, WON) + row("1.6", names.DP_FTRL, LOST, scale="large"))
    assert machine not in said(row("1.6", names.DP_FTRL, LOST) + row("1.6", names.DP_FTRL, WON, scale="large"))
    lost = row("2.2", names.SHERMAN_KOREN_ANY, LOST, ours=names.PCOMW_LAZY, scale="large")
    assert machine not in said(lost)  # nothing is private there


def test_where_everything_is_as_the_paper_says_no_reason_is_given():
    text = said(row("1.2", names.FLAT, WON, WON))
    assert "by certificate at 2 of 2 points" in text
    assert text.count("\n") == 0


def test_a_comparator_for_smooth_losses_that_is_lower_is_named_with_the_reason():
    text = said(row("1.3", names.OBJECTIVE_ANY, LOST, LOST, WON))
    assert "P-COMW's certificate is above that of the comparator at 2 of the 3 runnable points" in text
    assert "(0.50 to 2.00 times it)" in text
    assert "objective perturbation, any smooth loss, row 3, by certificate: constants and logarithms" in text.lower()
    assert "at 2 of 3 points the other is lower on this panel" in text


def test_a_comparator_that_is_mostly_higher_is_not_said_to_be_lower():
    text = said(row("1.3", names.OBJECTIVE_ANY, LOST, WON, WON))
    assert "above that of the comparator" not in text


def test_the_same_rate_has_no_order_to_show():
    text = said(row("1.1", names.OBJECTIVE_ANY, LOST, WON))
    assert "order shows" not in text
    assert "Where the paper gives both the same rate, T^(1/2) (row 1, smooth losses)" in text


def test_a_comparator_for_fewer_losses_has_a_sentence_of_its_own():
    text = said(row("1.3", names.OBJECTIVE, LOST, WON) + row("1.4", names.OBJECTIVE, LOST))
    assert text == (
        "Objective perturbation (Agarwal et al.), for smooth generalised linear losses (rows 3 and 4), is not in the "
        "paper's table; its authors have P-COMW's own rate there, and the lower one is by certificate objective pert. "
        "at 2 and P-COMW at 1 of 3 points; as measured objective pert. at 2 and P-COMW at 1 of 3 points."
    )


def test_the_last_row_is_the_other_way_round():
    assert "the paper's order shows by certificate at 1 of 2 points" in said(row("1.7", names.DP_FTRL, WON, LOST))
    assert "its table names the other" in said(row("1.7", names.DP_FTRL, WON))
    assert "its table names the other" not in said(row("1.7", names.DP_FTRL, LOST))


def test_descent_in_blocks_is_told_apart_from_the_paper():
    # A certificate of 200 is 200 S / (T d^(1/2)) times d^(1/2) T / S: with S = 1/4, T = 1000, d = 2 that is 0.035.
    text = said(row("2.3", names.DESCENT, LOST, ours=names.PCOMW_LAZY))
    assert "online gradient descent is not in the paper's table" in text.lower()
    assert "c = 0.035 at the points that it loses" in text


def test_noisy_descent_is_told_apart_from_the_paper():
    text = said(row("1.6", names.NOISY_DESCENT, LOST, WON) + row("1.7", names.NOISY_DESCENT, LOST, WON))
    assert (
        "Noisy descent is not in the paper's table. That its rate, d^(1/4) T^(1/2) epsilon^(-1/2), is the larger one "
        "in row 6 shows by certificate at 1 of 2 points; as measured at 1 of 2 points. That its rate, "
        "d^(1/4) T^(1/2) epsilon^(-1/2), is the smaller one in row 7 shows by certificate at 1 of 2 points; as "
        "measured at 1 of 2 points."
    ) in text
    assert "the rates have P-COMW ahead (" in text
    assert "its table names" not in text


def test_ties_are_called_ties():
    near = ((100.0, 50.0), (100.5, 51.0))
    text = said(row("1.6", names.DP_FTRL, near, WON))
    assert "row 6, by certificate: at 1 of 2 points, large T among them, both are within one percent" in text
    assert "at 1 of 2 points the spread of the runs covers the difference" in text


def test_where_neither_says_anything_constants_are_not_blamed():
    cells = row("1.2", names.FLAT, ((100.0,), (200.0,)), WON)
    for cell in cells[:2]:
        cell |= {"vacuous": True}
    text = said(cells)
    assert "at 1 of 2 points, large T among them, neither says anything" in text
    assert "constants" not in text
    assert "constants" in said(row("1.2", names.FLAT, LOST, WON))


def results(cells):
    return judged({"quick": True, "environment": ENVIRONMENT, "work": 0.0, "seconds": 0.0, "table1": {"cells": cells}})


ENVIRONMENT = {
    "date": "today",
    "machine": {"cpu": "one", "cores": 1, "system": "Linux", "load at start": 0.0},
    "versions": {"python": "3"},
}


def test_the_table_has_levels_winners_and_the_sentences():
    made = results(row("1.2", names.OBJECTIVE_ANY, WON, LOST) + row("1.2", names.OBJECTIVE_ANY, WON, scale="large"))
    text = markdown(made)
    lines = [line for line in text.splitlines() if line.startswith("| 1.2: epsilon from")]
    assert len(lines) == 1
    assert "| T = 1000, d = 2, epsilon = 1.25 | 0.1 / 0.2 | objective pert., any (P-COMW 1, it 1) |" in lines[0]
    assert "| 0.05 ± 0.001 / 0.09 ± 0.001 | objective pert., any (P-COMW 1, it 1) | P-COMW (all 1) |" in lines[0]
    assert "objective perturbation, any smooth loss 0.1*" in lines[0]
    for sentence in verdict(made["table1"]["levels"], made["table1"]["rows"]):
        assert f"* {sentence}" in text


def test_a_note_of_the_numbers_stays_with_them():
    made = results(row("1.2", names.FLAT, WON)) | {"note": "Made on a busy machine."}
    assert "Made on a busy machine." in markdown(made)


def test_what_was_not_run_or_says_nothing_is_said():
    cells = row("1.6", names.DP_FTRL, ((100.0,), (200.0,)))
    cells[0] |= {"vacuous": True}
    cells[1] |= {"certificate": None, "reason": "no"}
    (level,) = levels_of(cells)
    shown = short_line(level)
    assert shown[2:6] == ["no plan\n0.1 (vacuous)", "none\n(all 1)", "-\n-", "not run"]
    assert "none says anything" in markdown(results(cells))


@pytest.mark.parametrize("quick", [True, False])
def test_no_cells_no_table(quick):
    assert "nothing is compared" in markdown(results([]) | {"quick": quick})
