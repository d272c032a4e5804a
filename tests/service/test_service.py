"""The service from the outside: making, rounds, decisions, and what it refuses."""

import json
from urllib.parse import quote

import numpy as np
import pytest
from served import LAZY, QUANTILE, SCORER, inside, make, post, problem

import reticent as rt
from reticent.fleet import Spec

VALUES = np.random.default_rng(3).gamma(4.0, 50.0, 2000).round(2)


@pytest.fixture
def service(tmp_path):
    with inside(tmp_path) as found:
        yield found


@pytest.fixture
def client(service):
    return service[0]


def test_a_learner_decides_as_one_that_runs_here(client, service):
    made = make(client)
    assert made.status_code == 201
    assert made.json()["promise"]["epsilon"] == 1.0
    assert made.headers["location"] == "/v1/learners/p95"
    for i in range(0, 2000, 400):
        receipt = post(
            client, "/v1/learners/p95/rounds", {"columns": {"values": VALUES[i : i + 400].tolist()}}, f"b{i}"
        )
        assert receipt.json()["rounds"] == 400, receipt.text
    held = service[1]._held["p95"]
    alone = Spec.from_json(QUANTILE).new(held._fleet.seed_of(0))
    alone.update_many(VALUES)
    found = client.get("/v1/learners/p95/decision").json()
    assert found["decision"] == alone.decision
    assert found["version"] == alone.switches > 0
    history = client.get("/v1/learners/p95/history").json()
    assert history["decisions"][-1] == alone.decision
    assert history["rounds"][-1] == found["since"]
    assert len(history["rounds"]) == alone.switches + 1
    assert client.get("/v1/learners/p95/spent").json() == {"epsilon": 1.0, "delta": 0.0}
    assert "0.95-quantile" in client.get("/v1/learners/p95/plan").json()["rows"][0][1]


def test_rows_columns_and_raw_bodies_are_the_same_rounds(client):
    rng = np.random.default_rng(1)
    features = rng.normal(size=(400, 2)) / 3
    labels = np.where(features[:, 0] > 0, 1.0, -1.0)
    rows = [{"features": x.tolist(), "targets": y} for x, y in zip(features, labels, strict=True)]
    columns = {"features": features.tolist(), "targets": labels.tolist()}
    raw = np.column_stack([features, labels]).astype("<f8").tobytes()
    found = []
    for name, body in (("a", {"json": {"rows": rows}}), ("b", {"json": {"columns": columns}}), ("c", {"content": raw})):
        assert make(client, spec=SCORER, id=name).status_code == 201
        kind = {"Content-Type": "application/octet-stream"} if "content" in body else {}
        answer = client.post(f"/v1/learners/{name}/rounds", **body, headers={"Idempotency-Key": "x", **kind})
        assert answer.status_code == 200, answer.text
        found.append(client.get(f"/v1/learners/{name}/decision").json())
    assert found[0] == found[1] == found[2]
    assert found[0]["version"] > 0


def test_a_request_that_comes_again_has_the_same_receipt_and_no_effect(client):
    make(client)
    body = {"columns": {"values": VALUES[:500].tolist()}}
    first = post(client, "/v1/learners/p95/rounds", body, "once")
    before = client.get("/v1/learners/p95/decision").json()
    again = post(client, "/v1/learners/p95/rounds", body, "once")
    assert again.text == first.text
    assert (first.headers.get("idempotency-replayed"), again.headers["idempotency-replayed"]) == (None, "true")
    assert client.get("/v1/learners/p95/decision").json() == before
    other = post(client, "/v1/learners/p95/rounds", {"columns": {"values": [1.0]}}, "once")
    problem(other, "key-reused", 422)
    problem(client.post("/v1/learners/p95/rounds", json=body), "no-idempotency-key", 400)
    assert make(client).status_code == 200  # the same learner, asked for again
    problem(make(client, spec=LAZY), "exists", 409)


def test_requests_that_are_committed_together_have_receipts_of_their_own(client, service):
    from reticent.service._held import Write

    make(client)
    post(client, "/v1/learners/p95/rounds", {"columns": {"values": VALUES[:340].tolist()}}, "before")
    held = service[1]._held["p95"]
    parts = [VALUES[340 + 5 * i : 345 + 5 * i] for i in range(100)]  # the window of 350 ends within the second
    group = [Write(f"key {i}", bytes(16), None, [part]) for i, part in enumerate(parts)]
    outcomes, taken = held._commit(group)
    changed = [i for i, outcome in enumerate(outcomes) if json.loads(outcome.body)["changed"]]
    assert changed[0] == 1
    assert (taken.rounds, taken.changes) == (500, len(changed))
    assert client.get("/v1/learners/p95/history").json()["rounds"][1] == 350


def test_a_bad_request_among_others_is_refused_alone(client, service):
    from reticent.service._held import Write

    make(client, spec=SCORER)
    post(client, "/v1/learners/p95/rounds", {"rows": [{"features": [0.1, 0.2], "targets": 1}]}, "first")
    held = service[1]._held["p95"]
    good, bad = [np.zeros((1, 2)), np.ones(1)], [np.zeros((1, 2)), np.full(1, 0.123456)]
    group = [Write(f"k{i}", bytes(16), None, bad if i == 1 else good) for i in range(3)]
    outcomes, taken = held._commit(group)
    assert [getattr(one, "kind", "taken") for one in outcomes] == ["taken", "refused", "taken"]
    assert taken.rounds == 2
    assert "0.123" not in str(outcomes[1])


def test_etags_and_waiting(client, service):
    make(client)
    first = client.get("/v1/learners/p95/decision")
    known = {"If-None-Match": first.headers["etag"]}
    unchanged = client.get("/v1/learners/p95/decision", headers=known)
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    assert client.get("/v1/learners/p95/decision?wait=0.05", headers=known).status_code == 304
    post(client, "/v1/learners/p95/rounds", {"columns": {"values": VALUES[:400].tolist()}}, "a")
    changed = client.get("/v1/learners/p95/decision?wait=20", headers=known)
    assert changed.status_code == 200
    assert changed.headers["etag"] != first.headers["etag"]
    problem(client.get("/v1/learners/p95/decision?wait=soon", headers=known), "malformed", 400)


def test_fleets_by_key(client):
    assert make(client, "fleet", id="regions", max_keys=2).status_code == 201
    keys = ["eu", "us", "<b>'; DROP TABLE reticent_fleets; --"] * 500
    values = np.random.default_rng(0).gamma(4.0, 50.0, 1500).tolist()
    body = {"keys": keys, "columns": {"values": values}}
    receipt = post(client, "/v1/fleets/regions/rounds", body, "a").json()
    assert receipt == {"rounds": 1500, "changed": ["eu", "us", "<b>'; DROP TABLE reticent_fleets; --"]}
    page = client.get("/v1/fleets/regions/keys?limit=2").json()
    assert len(page["keys"]) == 2
    assert page["more"]
    assert [one["key"] for one in client.get("/v1/fleets/regions/keys?prefix=e").json()["keys"]] == ["eu"]
    after = client.get("/v1/fleets/regions/keys", params={"after": page["keys"][-1]["key"]}).json()
    assert len(after["keys"]) == 1
    assert client.get("/v1/fleets/regions/keys", params={"prefix": "%"}).json()["keys"] == []
    for key in keys[:3]:
        path = f"/v1/fleets/regions/keys/{quote(key, safe='')}"
        assert client.get(f"{path}/decision").json()["version"] == 1
        assert client.get(f"{path}/spent").json()["epsilon"] == 1.0
    problem(client.get("/v1/fleets/regions/keys/none/decision"), "not-found", 404)
    problem(client.get("/v1/learners/regions/decision"), "not-found", 404)
    raw = np.array([[7.0, 3.0]] * 350).astype("<f8").tobytes()
    headers = {"Idempotency-Key": "raw", "Content-Type": "application/octet-stream"}
    assert client.post("/v1/fleets/regions/rounds", content=raw, headers=headers).json()["changed"] == ["7"]


def test_delayed_feedback_enters_in_the_order_of_opening_after_the_lag(client, service):
    make(client, spec=SCORER, feedback_lag=3)
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 2)) / 3
    labels = np.where(features[:, 0] > 0, 1.0, -1.0)
    path, late = "/v1/learners/p95/rounds", {7, 20}
    for i in range(60):
        assert post(client, path, {"round": f"r{i}", "open": features[i].tolist()}, f"o{i}").status_code == 200
        back = i - 1 - i % 2  # targets come out of order, and some never
        if back >= 0 and back not in late:
            post(client, path, {"round": f"r{back}", "close": labels[back]}, f"c{back}")
        if i % 2 and i - 1 >= 0 and i - 1 not in late:
            post(client, path, {"round": f"r{i - 1}", "close": labels[i - 1]}, f"c{i - 1}")
    held = service[1]._held["p95"]
    alone = Spec.from_json(SCORER).new(held._fleet.seed_of(0))
    zeroed = features[:57].copy()
    zeroed[sorted(late)] = 0.0
    alone.observe_many(zeroed, labels[:57])
    assert int(held._fleet.rounds([0])[0]) == 57
    assert client.get("/v1/learners/p95/decision").json()["decision"] == alone.decision.tolist()
    problem(post(client, path, {"round": "r7", "close": 1}, "late"), "round-closed", 410)
    problem(post(client, path, {"round": "r59", "open": [0.0, 0.0]}, "twice"), "key-reused", 422)
    problem(post(client, path, {"rows": [{"features": [0, 0], "targets": 1}]}, "whole"), "refused", 422)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"columns": {"values": [1.0, "secret"]}}, "Expected"),
        ({"columns": {"numbers": [1.0]}}, "there is no column 'numbers'"),
        ({"columns": {"values": []}}, "rounds must be given"),
        ({"columns": {"values": [[1.0, 2.0]]}}, "must have 1 rounds, each a number"),
        ({"columns": {"values": [1.0, None]}}, "round 1 of the request does not"),
        ({"columns": {"values": [1.0]}, "rows": [{"values": 1.0}]}, "either columns or rows"),
        ({"rows": [{"values": 1.0}, {"other": 1.0}]}, "row 1 must have values"),
        ({"round": "a", "open": [1.0]}, "made without a feedback_lag"),
        ([], "Expected `object`"),
    ],
)
def test_bad_rounds_are_refused_and_leave_no_mark(client, service, body, told):
    make(client)
    answer = post(client, "/v1/learners/p95/rounds", body, "bad")
    assert answer.status_code in (400, 422)
    assert told.lower() in answer.json()["detail"].lower()
    assert "secret" not in answer.text
    assert post(client, "/v1/learners/p95/rounds", {"columns": {"values": [1.0]}}, "bad").json()["rounds"] == 1


def test_the_ledger_is_charged_before_anything_and_once(tmp_path):
    book = rt.Ledger(tmp_path / "privacy.db")
    book.add("riders", 1.5, 1e-6)
    with inside(tmp_path, ledger=str(tmp_path / "privacy.db")) as (client, _):
        assert make(client, id="one", population="riders").status_code == 201
        assert make(client, id="one", population="riders").status_code == 200
        assert [entry.what for entry in book.entries("riders")] == ["0.95-quantile, a fleet"]
        assert "riders" in problem(make(client, id="two", population="riders"), "over-budget", 409)
        problem(client.get("/v1/learners/two"), "not-found", 404)
        # A crash after the entry, before the learner was there: asked again, the entry is the one of this learner.
        from reticent.service import _hub

        book.add("drivers", 1.0, 1e-6)
        begin, _hub.Fleet = _hub.Fleet, None
        try:
            assert make(client, id="three", population="drivers").status_code == 500
        finally:
            _hub.Fleet = begin
        problem(client.get("/v1/learners/three"), "not-found", 404)
        assert make(client, id="three", population="drivers").status_code == 201
        assert len(book.entries("drivers")) == 1
        standing = {one["name"]: one for one in client.get("/v1/ledger").json()["populations"]}
        assert standing["drivers"]["entries"] == 1
        problem(make(client, "fleet", id="many", population="drivers", max_keys=3), "over-budget", 409)


def test_a_retired_learner_keeps_its_decision(client):
    make(client)
    post(client, "/v1/learners/p95/rounds", {"columns": {"values": VALUES[:400].tolist()}}, "a")
    before = client.get("/v1/learners/p95/decision").json()
    assert client.post("/v1/learners/p95/retire").json()["state"] == "retired"
    problem(post(client, "/v1/learners/p95/rounds", {"columns": {"values": [1.0]}}, "b"), "retired", 410)
    assert client.get("/v1/learners/p95/decision").json() == before


def test_specifications_that_cannot_be_kept(client, service):
    for spec, told in (
        ({"learner": "PrivateQuantile", "level": 2, "low": 0, "high": 1, "epsilon": 1}, "level"),
        ({"learner": "nothing"}, "learner must be one of"),
        ({"learner": "lazy_learner", "loss": "linear", "domain": "ball:20000", "max_switches": 5}, "10,000"),
    ):
        assert told in problem(make(client, spec=spec), "refused", 422)
    packed = {"learner": "make", "plan": {"packed": "eA=="}, "loss": "linear"}
    problem(make(client, spec=packed), "malformed", 400)
    problem(make(client, population="nobody"), "refused", 422)


def test_seeds_are_for_servers_that_allow_them(tmp_path):
    with inside(tmp_path, seeds=False) as (client, _):
        assert "--seeds" in problem(make(client), "refused", 422)
        assert make(client, seed=None).status_code == 201
