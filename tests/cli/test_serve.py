"""`reticent serve` on the command line: what it prints first, what it prints later, and what it says of mistakes."""

import os
import signal
import socket
import subprocess
import sys

import pytest

pytest.importorskip("fastapi")

from served import Process, make

from reticent.cli import main


def test_the_first_start_prints_a_key_once_and_what_to_try(tmp_path):
    with Process(tmp_path) as first:
        told = first.log.read_text()
        assert f"{first.url}/#key={first.key}" in told
        assert told.count("curl ") == 3
        with first.client() as client:
            assert make(client).status_code == 201
            assert client.get("/v1/learners/p95/decision").json()["decision"] == 500.0
        first.stop()
    with Process(tmp_path, key=first.key) as second:
        again = second.log.read_text()[len(told) :]
        assert "rt_" not in again
        assert "the dashboard is there too" in again
        with second.client() as client:
            assert client.get("/v1/me").json()["scopes"] == ["admin"]
    with Process(tmp_path, "--new-admin-key") as third:
        assert third.key != first.key


def test_it_stops_with_code_0_at_a_signal_and_finishes_what_waits(tmp_path):
    command = [sys.executable, "-m", "reticent.cli", "serve", "--port", "0", "--store", str(tmp_path / "s.db")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline().startswith("Listening at http://127.0.0.1:")
            os.kill(process.pid, signal.SIGTERM)
            assert process.wait(40) == 0
        finally:
            process.kill()


def test_mistakes_are_one_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        check(taken, capsys)


def check(taken, capsys):
    for words, told in {
        "serve --store nowhere/s.db": "folder that is there",
        "serve --rate 0": "rate must be greater than 0",
        "serve --ledger nowhere/l.db --port 0": "folder that is there",
        "serve --port 99999": "65535",
        f"serve --port {taken}": "in use",
        "serve --store postgresql+psycopg://nobody@127.0.0.1:1/none": "cannot be used",
    }.items():
        capsys.readouterr()
        assert main(words.split()) == 2
        assert told in capsys.readouterr().err
