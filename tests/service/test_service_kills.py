"""Kills under load: what is decided, and every receipt, is as in an undisturbed run with the same seed."""

import json
import threading
import time

import numpy as np
import pytest
from served import QUANTILE, SCORER, Process

from reticent.client import Client

FEW, MANY = 5, 200


def rounds_of(kind, count):
    rng = np.random.default_rng(11)
    if kind == "quantile":
        return {"values": (rng.gamma(4.0, 50.0, count) * np.linspace(1, 4, count)).round(2)}  # it drifts
    features = rng.normal(size=(count, 2)) / 3
    return {"features": features, "targets": np.where(features[:, 0] > 0, 1.0, -1.0)}


def made(client, spec):
    return client.make_learner(spec, id="one", seed=7, again="make")


def undisturbed(folder, spec, columns, size):
    """Return the receipts and the history of a run that nobody disturbs."""
    with Process(folder) as server, Client(server.url, server.key) as client:
        return transcript(made(client, spec), columns, size)


def transcript(learner, columns, size, disturb=lambda i: None):
    count = len(next(iter(columns.values())))
    receipts = []
    for i, start in enumerate(range(0, count, size)):
        disturb(i)
        part = {name: column[start : start + size] for name, column in columns.items()}
        receipt = learner.observe(again=f"batch {i}", **part)
        receipts.append((receipt.rounds, receipt.changed))
    return receipts, learner.history(10_000), learner.spent()


def killed(folder, spec, columns, size, kills):
    """The same with a server that is killed again and again, at any moment, and comes back at the same port."""
    server = Process(folder)
    port, key = server.port, server.key
    state = {"server": server, "kills": 0, "stop": False}

    def kill():
        rng = np.random.default_rng(1)
        while not state["stop"] and state["kills"] < kills:
            time.sleep(float(rng.uniform(0.0, 0.15)))
            state["server"].kill()
            state["kills"] += 1
            state["server"] = Process(folder, "--port", str(port), key=key)

    killer = threading.Thread(target=kill)
    try:
        with Client(server.url, key, patience=120.0) as client:
            learner = made(client, spec)
            killer.start()
            i = 0
            while True:  # the whole stream once; then again and again, which must change nothing
                found = transcript(learner, columns, size)
                i += 1
                if state["kills"] >= kills:
                    break
            return found, i
    finally:
        state["stop"] = True
        killer.join(120)
        state["server"].kill()


def check(tmp_path, kind, kills):
    spec, columns = {"quantile": QUANTILE, "scorer": SCORER}[kind], rounds_of(kind, 3000)
    (tmp_path / "calm").mkdir()
    (tmp_path / "wild").mkdir()
    calm = undisturbed(tmp_path / "calm", spec, columns, 100)
    wild, _ = killed(tmp_path / "wild", spec, columns, 100, kills)
    assert wild[0] == calm[0]
    assert wild[1] == calm[1]
    assert wild[2] == calm[2]
    assert len(calm[1].rounds) > 3


def test_kills_leave_the_transcript_as_it_is(tmp_path):
    check(tmp_path, "quantile", FEW)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["quantile", "scorer"])
def test_many_kills_leave_the_transcript_as_it_is(tmp_path, kind):
    check(tmp_path, kind, MANY)


def test_a_rolling_restart_loses_nothing(tmp_path):
    columns = rounds_of("quantile", 1200)
    (tmp_path / "calm").mkdir()
    (tmp_path / "wild").mkdir()
    calm = undisturbed(tmp_path / "calm", QUANTILE, columns, 100)
    folder = tmp_path / "wild"
    with Process(folder) as old, Client(old.url, old.key) as client:
        made(client, QUANTILE)
        half = {name: column[:600] for name, column in columns.items()}
        first = transcript(client.learner("one"), half, 100)
        with Process(folder, key=old.key) as new:
            old.stop()
            with Client(new.url, old.key) as after:
                second = transcript(after.learner("one"), columns, 100)
            new.stop()
    assert first[0] == calm[0][:6]
    assert second == calm
    assert "Traceback" not in (folder / "log.txt").read_text()


def test_a_kill_between_commit_and_answer_is_found_by_the_idempotency_key(tmp_path):
    """The receipt of a request whose answer nobody got is that of its commit."""
    import httpx

    body = {"columns": {"values": rounds_of("quantile", 700)["values"].tolist()}}
    server = Process(tmp_path)
    with server.client() as client:
        client.post("/v1/learners", json={"id": "one", "spec": QUANTILE, "seed": 7}, headers={"Idempotency-Key": "m"})
        with pytest.raises(httpx.TimeoutException):
            client.post("/v1/learners/one/rounds", json=body, headers={"Idempotency-Key": "a"}, timeout=1e-4)
    server.kill()
    with Process(tmp_path, key=server.key) as again, again.client() as client:
        answer = client.post("/v1/learners/one/rounds", json=body, headers={"Idempotency-Key": "a"})
        assert json.loads(answer.text) == {"rounds": 700, "changed": ["one"]}
        assert client.get("/v1/learners/one/history").json()["rounds"][-1] <= 700
