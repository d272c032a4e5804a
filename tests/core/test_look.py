"""One palette for a system everywhere: the registry knows every system, and gives no two the same look."""

import pytest

pytest.importorskip("matplotlib")

from reticent._core._look import numbered, styles
from reticent._core._names import LOOKS, NAMES, PALETTE, colour_of
from reticent.systems._choice import SYSTEMS


def test_every_system_is_in_the_registry() -> None:
    assert [system.name for system in SYSTEMS if system.name not in NAMES] == []


def test_no_two_systems_look_alike() -> None:
    drawn = [numbered(number) for number in LOOKS.values()]
    assert len(set(drawn)) == len(NAMES)


@pytest.mark.parametrize("beside", [[], ["something new"], ["DP-FTRL", "noisy descent"], sorted(NAMES)])
def test_a_system_looks_the_same_in_every_picture(beside: list[str]) -> None:
    for name in NAMES:
        style = styles([*beside, name])[name]
        assert style == numbered(LOOKS[name])
        assert style.colour == NAMES[name].colour == colour_of(name)


def test_what_nobody_knows_takes_what_is_free() -> None:
    names = [*NAMES, *(f"new {k}" for k in range(30))]
    assert len(set(styles(names).values())) == len(names)
    taken = styles(["P-COMW", "DP-FTRL", "new"])
    assert taken["new"].colour in PALETTE
    assert taken["new"].colour not in (taken["P-COMW"].colour, taken["DP-FTRL"].colour)
