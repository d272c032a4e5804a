"""An attack by the description of the API: whatever it allows, and much that it does not, is answered as it says."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from served import SCORER, Process

PROGRAM = next(
    filter(None, (shutil.which("schemathesis"), shutil.which("schemathesis", path=str(Path(sys.executable).parent)))),
    None,
)


@pytest.mark.slow
def test_the_api_is_as_it_is_described(tmp_path):
    if PROGRAM is None:
        pytest.skip("schemathesis is not installed (pip install 'reticent[fuzz]')")
    with Process(tmp_path, "--seconds", "5") as server, server.client() as client:
        again = {"Idempotency-Key": "make"}
        for name, body in (("a", {"spec": SCORER}), ("b", {"spec": SCORER, "feedback_lag": 2})):
            assert client.post("/v1/learners", json={"id": name, **body}, headers=again).status_code == 201
        assert client.post("/v1/fleets", json={"id": "f", "spec": SCORER}, headers=again).status_code == 201
        command = [PROGRAM, "run", f"{server.url}/openapi.json", "--header", f"Authorization: Bearer {server.key}"]
        command += ["--max-examples", "20", "--seed", "1", "--request-timeout", "20", "--max-time", "150"]
        command += ["--exclude-path-regex", "/events$", "--generation-database", "none", "--no-color"]
        # A name that is not there, or a row that a learner refuses, is right by the description and is refused.
        command += ["--exclude-checks", "positive_data_acceptance", "--continue-on-failure"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=tmp_path, check=False)
        assert done.returncode == 0, done.stdout[-6000:]
        assert server.alive()
    log = (tmp_path / "log.txt").read_text()
    assert "Traceback" not in log
    assert " at _" not in log, log[-2000:]  # no error of ours was written down
