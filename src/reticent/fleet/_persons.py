"""Under how many keys one person has rows: counted by keyed hashes, and more than allowed refused."""

from __future__ import annotations

from typing import Any

import numpy as np

from reticent.fleet._keys import Groups, Root


class Persons:
    """Keeps under which keys each person has appeared, as hashes that tell nothing without the root of the fleet."""

    def __init__(self, root: Root, most: int | None) -> None:
        """Take how many keys a person may have rows under; None for any number, which is not counted."""
        self._root, self._most = root, most
        self._seen: dict[str, set[int]] = {}

    def marks(self, groups: Groups, persons: Any) -> dict[str, set[int]]:
        """Return under which keys of a batch, by their place in it, each person appears; nothing if not counted."""
        if persons is None or self._most is None:
            return {}
        named = persons.tolist() if isinstance(persons, np.ndarray) else list(persons)
        if len(named) != groups.order.size:
            raise ValueError(f"every row needs a person: got {groups.order.size} keys and {len(named)} persons")
        if any(isinstance(one, bool) or not isinstance(one, int | str) for one in set(map(_plain, named))):
            raise ValueError("persons must be whole numbers or texts, one for each row")
        codes = np.empty(groups.order.size, dtype=np.int64)
        codes[groups.order] = np.repeat(np.arange(len(groups.keys)), groups.counts)
        found: dict[Any, set[int]] = {}
        for person, code in set(zip(map(_plain, named), codes.tolist(), strict=True)):
            found.setdefault(person, set()).add(code)
        return {self._root.mark(person).hex(): places for person, places in found.items()}

    def admitted(
        self, groups: Groups, marks: dict[str, set[int]], numbers: Any, known: dict[str, set[int]] | None
    ) -> list[tuple[str, int]]:
        """Return who appears under which key for the first time; refuse a batch with a person under too many.

        `known` is what the store has; None for a fleet without one.
        """
        if not marks:
            return []
        assert self._most is not None
        before, pairs = self._seen if known is None else known, list[tuple[str, int]]()
        for mark, places in marks.items():
            had = before.get(mark, set())
            new = {int(numbers[place]) for place in places} - had
            if len(had) + len(new) > self._most:
                row = int(min(groups.firsts[place] for place in places))
                raise ValueError(
                    f"a person of this batch, who has a row under the key of row {row}, would appear under "
                    f"{len(had) + len(new)} keys, where max_keys={self._most}; nothing was recorded. Put rounds of "
                    "zeros (a public value, for a tracker) in place of such rows"
                )
            pairs.extend((mark, number) for number in sorted(new))
        return pairs

    def appeared(self, pairs: list[tuple[str, int]]) -> None:
        """Write down who has appeared, for a fleet without a store."""
        for mark, number in pairs:
            self._seen.setdefault(mark, set()).add(number)


def _plain(person: Any) -> Any:
    return person.item() if isinstance(person, np.generic) else person
