"""A service for tests: inside this process, or as a process of its own; with a time limit on everything."""

import atexit
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import uvicorn

from reticent.service import Settings, create_app
from reticent.service._limits import impatient

QUANTILE = {"learner": "PrivateQuantile", "level": 0.95, "low": 0, "high": 1000, "epsilon": 1.0}
SCORER = {"learner": "private_learner", "loss": "logistic", "domain": "ball:2:8", "epsilon": 1.0, "delta": 1e-6}
LAZY = {"learner": "lazy_learner", "loss": "pinball:0.9", "domain": "interval:0:50", "max_switches": 20}


@contextmanager
def inside(folder, **options):
    """Run the application in a thread of this process; yields a client whose key administers, and the hub."""
    settings = Settings(str(folder / "service.db"), **{"seeds": True, **options})
    app = create_app(settings)
    http = impatient(settings.body_seconds)
    config = uvicorn.Config(
        app, port=0, http=http, access_log=False, log_config=None, log_level="warning", timeout_graceful_shutdown=5
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        for _ in range(1500):
            if server.started or not thread.is_alive():
                break
            time.sleep(0.02)
        assert server.started
        hub = app.state.service.hub
        key = hub.keys.make("tests", ["admin"])[0]
        port = server.servers[0].sockets[0].getsockname()[1]
        headers = {"Authorization": f"Bearer {key}"}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=30.0) as client:
            yield client, hub
    finally:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


def make(client, kind="learner", spec=QUANTILE, again=None, **more):
    body = {"id": "p95", "spec": spec, "seed": 1, **more}
    return client.post(f"/v1/{kind}s", json=body, headers={"Idempotency-Key": again or f"make {body['id']}"})


def post(client, path, body, again):
    return client.post(path, json=body, headers={"Idempotency-Key": again})


class Nursery:
    """A process that has imported everything, and forks a server each time it is asked: they start in no time.

    A server is a process of its own all the same, which can be killed, and the nursery buries it at once.
    """

    PROGRAM = """
import os, signal, sys
from reticent.cli import main
import reticent.service._run
import reticent.cli._app

signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for line in sys.stdin:
    folder, *words = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        log = os.open(folder + "/log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os._exit(main(["serve", *words]))
    print(child, flush=True)
"""
    _one = None

    @classmethod
    def server(cls, folder, words):
        """Return the number of the process of a new server."""
        if cls._one is None:
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            cls._one = subprocess.Popen([sys.executable, "-c", cls.PROGRAM], **pipes)
            atexit.register(cls._one.kill)
        cls._one.stdin.write("\t".join([str(folder), *words]) + "\n")
        cls._one.stdin.flush()
        return int(cls._one.stdout.readline())


class Process:
    """`reticent serve` in a process of its own."""

    def __init__(self, folder, *words, key=None):
        self.log = folder / "log.txt"
        words = ["--seeds", *words]
        if "--store" not in words:
            words += ["--store", str(folder / "service.db")]
        if "--port" not in words:
            words += ["--port", "0"]
        begin = self.log.stat().st_size if self.log.exists() else 0
        self.number = Nursery.server(folder, words)
        self.key, self.url = key, None
        until = time.monotonic() + 60
        while time.monotonic() < until and self.alive():
            said = self.log.read_bytes()[begin:].decode() if self.log.exists() else ""
            found = re.search(r"Listening at (http://[\d.]+:\d+)", said)
            given = re.search(r"^  (rt_\S+)$", said, re.MULTILINE)
            if found and (given or key):
                self.url, self.key = found[1], given[1] if given else key
                return
            time.sleep(0.01)
        self.kill()
        raise RuntimeError(f"the server has not started: {self.log.read_text()}")

    def alive(self):
        """Say whether it runs."""
        try:
            os.kill(self.number, 0)
        except ProcessLookupError:
            return False
        return True

    def _over(self, seconds):
        until = time.monotonic() + seconds
        while self.alive():
            assert time.monotonic() < until, "the server goes on"
            time.sleep(0.01)

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def client(self, **options):
        options = {"timeout": 30.0, "headers": {"Authorization": f"Bearer {self.key}"}, **options}
        return httpx.Client(base_url=self.url, **options)

    def kill(self):
        """End it as a crash does."""
        if self.alive():
            os.kill(self.number, signal.SIGKILL)
        self._over(30)

    def stop(self):
        """End it as an operator does."""
        os.kill(self.number, signal.SIGTERM)
        self._over(40)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()


def problem(answer, kind, status):
    """Check that an answer is a problem of a kind."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = json.loads(answer.text)
    assert body["type"] == f"urn:reticent:problem:{kind}", body
    assert body["status"] == status
    return body["detail"]
