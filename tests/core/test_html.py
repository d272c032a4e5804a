"""What notebooks show: nothing that is written into it can break it, and nothing in it has a ground of its own."""

import re

from reticent._core._html import Html, card, grid, join, numbers, tag

EVIL = "<script>alert('&')</script>"


def test_text_is_escaped_wherever_it_is_put_in() -> None:
    shown = [
        tag("p", EVIL, title=EVIL),
        join([EVIL]),
        card(EVIL, [(EVIL, EVIL)], note=EVIL, below=EVIL),
        grid([EVIL], [[EVIL]]),
    ]
    for one in shown:
        assert "<script" not in one
        assert "&lt;script&gt;" in one


def test_what_is_html_already_stays() -> None:
    assert card("a", below=tag("b", "c")).endswith("<b>c</b></div>")
    assert join([Html("<br>"), "<"]) == "<br>&lt;"


def test_a_card_takes_the_colours_of_the_page() -> None:
    shown = card("a plan", [("rounds", "3")], system="P-COMW", note="a remark", below=grid(["a"], [["1"]]))
    assert set(re.findall(r"#[0-9a-fA-F]{6}", shown)) == {"#D55E00"}  # the sample of the system
    assert not re.search(r"[^-]color:", shown)
    assert "background: currentColor" in card("x", system="online gradient descent")  # ink is lost on a dark page


def test_many_numbers_are_cut() -> None:
    assert numbers([0.5] * 3) == "0.5, 0.5, 0.5"
    assert numbers([0.5] * 100).endswith("... (100 numbers)")
