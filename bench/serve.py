"""What the service sustains: rounds a second in batches of 1 and 1,000, beside an endpoint that does nothing.

python bench/serve.py [--quick]

Everything is on the loopback interface of one machine: the server, and a client that keeps a number of connections busy
for some seconds. Both share its cores, for the bare endpoint as for ours.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import asyncio
import json
import re
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from _report import facts, facts_markdown, say, table, write

RESULTS = Path(__file__).parent / "results" / "serve.md"
BARE = """
import uvicorn
from fastapi import FastAPI, Request
from starlette.responses import Response

app = FastAPI(docs_url=None, redoc_url=None)

@app.post("/v1/learners/{id}/rounds")
async def nothing(request: Request):
    await request.body()
    return Response(b'{"rounds":0,"changed":[]}', media_type="application/json")

@app.get("/v1/learners/{id}/decision")
async def constant(request: Request):
    return Response(b'{"decision":0.0,"version":0,"since":0}', media_type="application/json")

config = uvicorn.Config(app, port=0, access_log=False, log_level="warning")
server = uvicorn.Server(config)
begin = server.startup

async def startup(sockets=None):
    await begin(sockets)
    print(f"Listening at http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}", flush=True)

server.startup = startup
server.run()
"""
SPECS = {
    "quantile": {"learner": "PrivateQuantile", "level": 0.95, "low": 0, "high": 1000, "epsilon": 1.0},
    "scorer": {"learner": "private_learner", "loss": "logistic", "domain": "ball:10:8", "epsilon": 1.0, "delta": 1e-6},
}


class Server:
    """A process that prints where it listens, and its key."""

    def __init__(self, words: list[str]) -> None:
        self.process = subprocess.Popen([sys.executable, *words], stdout=subprocess.PIPE, text=True)
        self.key, self.port = "", 0
        assert self.process.stdout is not None
        for line in self.process.stdout:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
            self.port = self.port or (int(found[1]) if found else 0)
            key = re.search(r"\brt_[\w-]+", line)
            self.key = self.key or (key[0] if key else "")
            if self.port and (self.key or "-c" in words):
                break

    def processor(self) -> float:
        """Return the seconds of processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


def request(method: str, path: str, key: str, body: bytes = b"", media: str = "application/json") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: bench", f"Authorization: Bearer {key}", f"Content-Length: {len(body)}"]
    if body:
        lines += [f"Content-Type: {media}", f"Idempotency-Key: {secrets.token_hex(16)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


async def answer(reader: asyncio.StreamReader) -> int:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    length = re.search(rb"content-length: (\d+)", head)
    await reader.readexactly(int(length[1]) if length else 0)
    return status


async def once(port: int, data: bytes) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    status = await asyncio.wait_for(answer(reader), 60)
    writer.close()
    return status


async def load(port, make, connections, seconds, times=None) -> float:
    """Keep connections busy; return answers a second. `make()` gives the bytes of one request."""
    counts, until = [0], time.perf_counter() + seconds

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        while time.perf_counter() < until:
            data, begin = make(), time.perf_counter()
            writer.write(data)
            status = await asyncio.wait_for(answer(reader), 60)
            assert status == 200, status
            if times is not None:
                times.append(time.perf_counter() - begin)
            counts[0] += 1
        writer.close()

    begin = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(connections)))
    return counts[0] / (time.perf_counter() - begin)


def bodies(rng: np.random.Generator, kind: str, size: int) -> tuple[bytes, bytes]:
    if kind == "quantile":
        values = rng.gamma(4.0, 50.0, size).round(2)
        return json.dumps({"columns": {"values": values.tolist()}}).encode(), values.astype("<f8").tobytes()
    features = (rng.normal(size=(size, 10)) / 10).round(4)
    labels = np.where(features[:, 0] > 0, 1.0, -1.0)
    columns = {"features": features.tolist(), "targets": labels.tolist()}
    return json.dumps({"columns": columns}).encode(), np.column_stack([features, labels]).astype("<f8").tobytes()


def measured(seconds: float, connections: int, store: str | None) -> dict:
    found: dict = {}
    with tempfile.TemporaryDirectory() as folder:
        where = store or f"{folder}/service.db"
        words = ["-m", "reticent.cli", "serve", "--store", where, "--guard", f"{folder}/guard", "--port", "0"]
        ours, bare = Server([*words, "--rate", "1e9"]), Server(["-c", BARE])
        try:
            for kind, spec in SPECS.items():
                data = request("POST", "/v1/learners", ours.key, json.dumps({"id": kind, "spec": spec}).encode())
                assert asyncio.run(once(ours.port, data)) == 201
            rng = np.random.default_rng(0)
            for kind in SPECS:
                for size, form in ((1, "JSON"), (1000, "JSON"), (1000, "float64")):
                    text, raw = bodies(rng, kind, size)
                    body, media = (text, "application/json") if form == "JSON" else (raw, "application/octet-stream")
                    path = f"/v1/learners/{kind}/rounds"
                    rates, work = {"bare": [], "ours": []}, {"bare": [], "ours": []}
                    for _ in range(2):  # in turns, so that both see the machine alike
                        for name, server in (("bare", bare), ("ours", ours)):

                            def make(server=server, body=body, media=media, path=path):
                                return request("POST", path, server.key, body, media)

                            before, begin = server.processor(), time.perf_counter()
                            rates[name].append(asyncio.run(load(server.port, make, connections, seconds / 2)))
                            answers = rates[name][-1] * (time.perf_counter() - begin)
                            work[name].append((server.processor() - before) / answers)
                    found[f"{kind}, {size}, {form}"] = {name: float(np.mean(rate)) for name, rate in rates.items()} | {
                        f"{name}_us": 1e6 * float(np.mean(each)) for name, each in work.items()
                    }
                    say(kind, size, form, found[f"{kind}, {size}, {form}"])
            found["read"] = asyncio.run(reading(ours, bare, rng, seconds, connections))
        finally:
            ours.stop()
            bare.stop()
    return found


async def reading(ours: Server, bare: Server, rng, seconds: float, connections: int) -> dict:
    """Return the times of GET decision while rounds come in, and those of the bare endpoint under the same load."""
    text, _ = bodies(rng, "quantile", 1)
    found = {}
    for name, server in (("bare", bare), ("ours", ours)):
        times: list[float] = []

        def post(server=server):
            return request("POST", "/v1/learners/quantile/rounds", server.key, text)

        def get(server=server):
            return request("GET", "/v1/learners/quantile/decision", server.key)

        rate, reads = await asyncio.gather(
            load(server.port, post, connections, seconds), load(server.port, get, 4, seconds, times)
        )
        p50, p99 = np.quantile(times, [0.5, 0.99])
        found[name] = {"writes": rate, "reads": reads, "p50_ms": 1000 * float(p50), "p99_ms": 1000 * float(p99)}
        say(name, found[name])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a second for each, and nothing is written")
    parser.add_argument("--connections", type=int, default=128)
    parser.add_argument("--store", help="a URL of SQLAlchemy instead of an SQLite file: an empty database")
    options = parser.parse_args()
    found = measured(1.0 if options.quick else 10.0, options.connections, options.store)
    rows = []
    for name, one in found.items():
        if name != "read":
            kind, size, form = name.split(", ")
            rounds = int(size) * one["ours"]
            work = [one["bare_us"], one["ours_us"], one["bare_us"] / one["ours_us"]]
            rows.append([kind, form, int(size), one["bare"], one["ours"], rounds, one["ours"] / one["bare"], *work])
    heads = ["learner", "body", "rounds each", "bare, requests/s", "service, requests/s", "rounds/s", "ratio"]
    heads += ["bare, µs of processor", "service, µs of processor", "ratio"]
    reads = [[name, one["writes"], one["reads"], one["p50_ms"], one["p99_ms"]] for name, one in found["read"].items()]
    kept = "SQLite, WAL, synchronous FULL" if not options.store else options.store.partition(":")[0]
    text = "\n\n".join(
        [
            "# The service under load",
            "python bench/serve.py: one server process and one client process on the same cores, "
            f"{options.connections} connections, all on the loopback interface. Every request has an Idempotency-Key, "
            f"and is on disk ({kept}) when it is answered. "
            "The bare endpoint is FastAPI under the same uvicorn; it reads the body and returns a constant.",
            facts_markdown(facts()),
            table(heads, rows, text=2),
            "Processor time is that of the server process for one request. It depends little on what else the machine "
            "does, where requests a second depend on it much: a commit waits for the disk and for its turn.",
            "`GET decision` while the other connections post rounds of 1:",
            table(["server", "posts/s", "gets/s", "median, ms", "p99, ms"], reads, text=1),
        ]
    )
    print(text)
    if not options.quick:
        write(RESULTS, text, {"facts": facts(), "found": found})


if __name__ == "__main__":
    main()
