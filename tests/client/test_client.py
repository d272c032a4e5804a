"""The client: the calls of learners that run here, over a wire that may break."""

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest
from served import QUANTILE, SCORER, inside

from reticent.client import Client, Decision, ServiceError

VALUES = np.random.default_rng(3).gamma(4.0, 50.0, 1000)


@pytest.fixture
def client(tmp_path):
    with inside(tmp_path) as (raw, _):
        key = raw.headers["authorization"].split()[1]
        with Client(str(raw.base_url), key, patience=5.0) as found:
            yield found


def test_a_learner_over_the_wire(client):
    learner = client.make_learner(QUANTILE, id="p95", name="Latency", again="make")
    assert repr(learner) == "<learner 'p95'>"
    first = learner.decision()
    receipt = learner.observe(values=VALUES, again="a")
    assert (receipt.rounds, receipt.changed, receipt.repeated) == (1000, ("p95",), False)
    again = learner.observe(values=VALUES, again="a")
    assert (again.rounds, again.changed, again.repeated) == (1000, ("p95",), True)
    now = learner.decision()
    assert now.version > first.version == 0
    assert learner.decision() is now  # not sent again
    assert learner.wait(0.05) is now
    assert learner.observe_raw(VALUES[:10].astype("<f8").tobytes()).rounds == 10
    history = learner.history()
    assert history.decisions[-1] == now.value
    assert history.rounds[-1] == now.since
    assert learner.spent().epsilon == 1.0
    assert learner.plan()["epsilon"] == 1.0
    assert [one["name"] for one in client.learners()] == ["Latency"]


def test_waiting_hears_of_a_change(client):
    learner = client.make_learner(QUANTILE, id="p95")
    before = learner.decision()

    def later():
        client.learner("p95").observe(values=VALUES)
        client.close()  # the connection of this thread

    send = threading.Timer(0.2, later)
    send.start()
    after = learner.wait(20.0)
    send.join(20)
    assert after.version > before.version


def test_fleets_and_delayed_feedback(client):
    fleet = client.make_fleet(QUANTILE, id="regions")
    keys = ["eu", "a/b"] * 500
    assert fleet.observe(keys, values=VALUES).changed == ("eu", "a/b")
    assert isinstance(fleet.key("a/b").decision().value, float)
    assert fleet.key("eu").spent().epsilon == 1.0
    assert repr(fleet) == "<fleet 'regions'>"
    learner = client.make_learner(SCORER, id="scorer", feedback_lag=2)
    for i in range(5):
        learner.open(f"r{i}", [0.1, 0.2])
        learner.open(f"r{i}", [0.1, 0.2])  # sent again by mistake
        learner.close(f"r{i}", 1.0)
    assert isinstance(learner.decision().value, tuple)


def test_problems_are_errors_with_a_sentence(client):
    with pytest.raises(ServiceError, match="there is no learner of this id") as found:
        client.learner("nobody").decision()
    assert (found.value.status, found.value.kind) == (404, "not-found")
    learner = client.make_learner(QUANTILE, id="p95")
    with pytest.raises(ServiceError, match="each a number"):
        learner.observe(values=[[1.0, 2.0]])
    key = client.make_key("reader", ["read"], only=["p95"], days=1)
    assert key.startswith("rt_")
    with pytest.raises(ValueError, match="such as http"):
        Client("localhost", "rt_key")


class Moody(BaseHTTPRequestHandler):
    """Answers the third time only: first not at all, then that it is not ready."""

    asked = ()

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        type(self).asked += (self.headers["Idempotency-Key"],)
        if len(self.asked) == 1:
            self.close_connection = True
            return
        status, body = (503, {}) if len(self.asked) == 2 else (200, {"rounds": 1, "changed": []})
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        """Say nothing."""


def test_what_is_sent_again_has_the_same_idempotency_key():
    server = HTTPServer(("127.0.0.1", 0), Moody)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with Client(f"http://127.0.0.1:{server.server_port}", "rt_key", timeout=10.0, patience=20.0) as client:
            assert client.learner("x").observe(values=[1.0]).rounds == 1
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)
    assert len(Moody.asked) == 3
    assert len(set(Moody.asked)) == 1


def test_flags_are_decisions(client):
    pytest.importorskip("openfeature")
    from openfeature import api
    from openfeature.evaluation_context import EvaluationContext

    from reticent.client.openfeature import ReticentProvider

    learner = client.make_learner(QUANTILE, id="p95")
    learner.observe(values=VALUES)
    fleet = client.make_fleet(QUANTILE, id="regions")
    fleet.observe(["eu"] * 1000, values=VALUES)
    client.make_learner(SCORER, id="scorer")
    provider = ReticentProvider(client, flags={"limit": fleet, "slow": learner}, thresholds={"slow": 1.0}, fresh=0.0)
    api.set_provider(provider)
    try:
        flags = api.get_client()
        now = learner.decision()
        assert isinstance(now, Decision)
        found = flags.get_float_details("p95", -1.0)
        assert (found.value, found.variant, found.reason) == (now.value, f"v{now.version}", "STATIC")
        assert flags.get_integer_value("p95", -1) == round(now.value)
        assert flags.get_boolean_value("slow", False) is True
        context = EvaluationContext(targeting_key="eu")
        assert flags.get_float_details("limit", -1.0, context).reason == "TARGETING_MATCH"
        assert flags.get_float_value("limit", -1.0) == -1.0  # no targeting key: the default
        assert flags.get_object_value("scorer", []) == [0.0, 0.0]
        assert flags.get_float_details("scorer", -1.0).error_code == "TYPE_MISMATCH"
        assert flags.get_float_details("nobody", -1.0).error_code == "FLAG_NOT_FOUND"
        assert flags.get_string_details("p95", "x").value == "x"
    finally:
        api.shutdown()
        api.clear_providers()


def test_a_flag_goes_on_without_the_service(tmp_path):
    pytest.importorskip("openfeature")
    from reticent.client.openfeature import ReticentProvider

    with inside(tmp_path) as (raw, _):
        client = Client(str(raw.base_url), raw.headers["authorization"].split()[1], patience=0.2, timeout=2.0)
        client.make_learner(QUANTILE, id="p95").observe(values=VALUES)
        provider = ReticentProvider(client, fresh=0.0)
        known = provider.resolve_float_details("p95", -1.0)
    stale = provider.resolve_float_details("p95", -1.0)
    assert (stale.value, stale.reason) == (known.value, "STALE")
    client.close()
