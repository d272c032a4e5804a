"""Reading ahead: the same items in order, errors in their place, and no thread left behind."""

import threading

import pytest

from reticent.lab.files import ahead


def test_an_error_comes_after_what_was_made():
    def items():
        yield 1
        yield 2
        raise ValueError("three")

    found = ahead(items())
    assert [next(found), next(found)] == [1, 2]
    with pytest.raises(ValueError, match="three"):
        next(found)


def test_only_a_few_are_made_ahead_and_closing_ends_the_thread():
    made = []

    def items():
        for i in range(1000):
            made.append(i)
            yield i

    before = threading.active_count()
    found = ahead(items())
    assert next(found) == 0
    found.close()
    assert threading.active_count() == before
    assert len(made) <= 5
