"""Every learner of the library goes on bit for bit from a saved file, and from a journal."""

import numpy as np
import pytest
from contract_rows import first_rows, one_row
from test_contract import ALL, data_of, new, plan_of, same_state

import reticent as rt
from reticent.journal import Reader
from reticent.systems._saved import pack_learner


@pytest.fixture(params=ALL, ids=lambda case: case.name)
def case(request):
    return request.param


def given_again(case):
    return case.loss if isinstance(case.loss, rt.Custom) else None


def test_saved_or_in_a_journal_it_goes_on_as_if_nothing_had_been(case, tmp_path):
    data, plan = first_rows(data_of(case, "drifting"), 0, 150), plan_of(case)
    straight, saved = new(case), new(case)
    whole = straight.observe_many(*data)
    middle = len(data[0]) // 3
    saved.observe_many(*first_rows(data, 0, middle))
    saved.observe(*one_row(data, middle))
    saved.save(tmp_path / "state")
    loaded = rt.load(tmp_path / "state", loss=given_again(case))
    same_state(loaded, saved)
    tail = loaded.observe_many(*first_rows(data, middle + 1, None))
    assert np.array_equal(whole.decisions()[middle + 1 :], tail.decisions())
    same_state(straight, loaded)
    assert pack_learner(straight) == pack_learner(loaded)

    path = tmp_path / "journal"
    with rt.Journal(path, batch=16, prompt=True, checkpoint=10**9) as journal:
        durable = journal.start(plan, case.loss, seed=7)
        durable.observe_many(*first_rows(data, 0, middle))
        durable._end("as if it had crashed")
    with rt.Journal(path, batch=16, prompt=True, checkpoint=10**9) as journal:
        durable = journal.resume(given_again(case))
        for i in range(middle, 2 * middle):
            assert np.array_equal(durable.decision, whole.decisions()[i])
            durable.observe(*one_row(data, i))
    with rt.Journal(path) as journal:
        durable = journal.open_or_start(plan, case.loss)
        durable.observe_many(*first_rows(data, 2 * middle, None))
        same_state(straight, durable)
        if plan.private:
            assert durable.spent() == straight.spent()
    with Reader(path) as reader:
        same_state(straight, reader.verify(given_again(case)))
        assert reader.spent() == (straight.spent() if plan.private else None)
