"""Benchmark of exact draws: time, work and memory, beside NUTS and an ensemble sampler.

python bench/draws.py [--quick] [--out bench/results/draws.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # beside another busy process two threads of OpenBLAS can be 40 times slower

import argparse
import math
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

import reticent as rt
from _report import facts_markdown, figure, peak_memory, run_sections, say, section_parser, table
from _streams import BETA, LAM, Stream, inside_slope

Cell = dict[str, Any]

PATIENCE = 30.0  # seconds after which a draw is called slow
BATCHES = 10  # of timed draws; their median mean counts
BLOCK = 55  # rounds between two draws of a private run
MEMORY_BLOCK = 1000
EMCEE_BUDGET = 30.0
LINK = 1e-6  # relative disagreement between our density and the one the peers use that stops the benchmark


# Measuring


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the body after so many seconds (as soon as compiled code returns)."""

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


def clock(work: Callable[[], Any]) -> float:
    """Return the seconds that a call takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def loaded(stream: Stream, A: np.ndarray, y: np.ndarray) -> rt.Gibbs:
    """Return the measure after all rounds."""
    measure = stream.measure()
    measure.observe_many(A, y)
    return measure


def compile_first(stream: Stream) -> None:
    """Let numba compile what this stream needs, on a short past."""
    A, y = stream.rounds(3000, np.random.default_rng(0))
    measure = loaded(stream, A, y)
    for seed in range(3):
        measure.draw(seed)
    rebuild_seconds(measure)


def builder(measure: rt.Gibbs) -> tuple[Any, str]:
    """Return the sampler that draws and the name of its method that reads the whole past."""
    method = measure.methods[0]
    names = {"curved": "_recentre", "quartic": "_build", "tangent": "_build", "line": "_index"}
    return measure._sampler("quartic" if method == "tangent" else method), names[method]


def rebuild_seconds(measure: rt.Gibbs) -> float:
    """Return the time to make anew what the sampler knows of the past: the median of three, fewer if slow."""
    sampler, name = builder(measure)
    times: list[float] = []
    while len(times) < 3 and sum(times) < 2.0:
        if name == "_index":  # only a new sampler reads the whole past
            sampler = type(sampler)(sampler.history, sampler.beta, sampler.lam)
        times.append(clock(getattr(sampler, name)))
    return float(np.median(times))


def time_draws(measure: rt.Gibbs, rng: np.random.Generator, least: int, seconds: float) -> Cell:
    """Time warm draws one by one: at least `least`, then on for so many seconds or up to ten times as many."""
    times: list[float] = []
    draws: list[rt.Draw] = []
    spent = 0.0
    while len(times) < least or (spent < seconds and len(times) < 10 * least):
        with deadline(PATIENCE):
            begin = time.perf_counter()
            draw = measure.draw(rng)
            times.append(time.perf_counter() - begin)
        spent += times[-1]
        draws.append(draw)
        if spent > 2 * PATIENCE and len(times) >= 10:
            break
    points = np.array([draw.point for draw in draws])
    batches = [float(part.mean()) for part in np.array_split(np.array(times), BATCHES)]
    return {
        "draws": len(draws),
        "methods": sorted({draw.method for draw in draws}),
        "distance": max(draw.distance for draw in draws),
        "median ms": 1e3 * float(np.median(times)),
        "mean ms": 1e3 * float(np.median(batches)),
        "99% ms": 1e3 * float(np.quantile(times, 0.99)),
        "proposals": float(np.mean([draw.proposals for draw in draws])),
        "losses read": float(np.mean([draw.losses_read for draw in draws])),
        "most losses read": max(draw.losses_read for draw in draws),
        "largest norm": float(np.linalg.norm(points, axis=1).max()),
        "points": points,
    }


def measured(measure: rt.Gibbs, rng: np.random.Generator, least: int, seconds: float = 1.0) -> Cell:
    """Time the first draw, warm draws and a rebuild; or say that and why there is no draw."""
    cell: Cell = {}
    begin = time.perf_counter()
    try:
        with deadline(PATIENCE):
            measure.draw(rng)
        cell["first s"] = time.perf_counter() - begin
        cell |= time_draws(measure, rng, least, seconds)
    except rt.WorkLimitError:
        cell["slow"] = f"slow: gave up after {time.perf_counter() - begin:.0f} s at the limit of proposals"
    except TimeoutError:
        cell["slow"] = f"slow: a draw took more than {PATIENCE:.0f} s"
    if "slow" not in cell:
        cell["rebuild s"] = rebuild_seconds(measure)
    return cell


def disagreement(points: np.ndarray, mean: np.ndarray, error: np.ndarray) -> float:
    """Return the largest difference between the two means over the coordinates, in standard errors."""
    total = np.sqrt(error**2 + points.var(axis=0, ddof=1) / len(points))
    return float(np.max(np.abs(points.mean(axis=0) - mean) / total))


def add_peers(cell: Cell, loss: str, A: np.ndarray, y: np.ndarray, measure: rt.Gibbs, quick: bool) -> None:
    """Run NUTS and emcee on the same target, and write what they took into the cell."""
    import _peers

    points = cell["points"]
    ours, theirs = measure.log_density(points[0]), _peers.log_densities(points[:1], loss, A, y)[0]
    if not math.isclose(ours, theirs, rel_tol=LINK):
        raise RuntimeError(f"the peers would sample another density: {theirs} instead of {ours}")
    large = len(y) > 200_000
    warm_up, samples = (100, 80) if large else (300, 200) if quick else (400, 400)
    nuts = _peers.nuts(loss, A, y, points[0], warm_up, samples)
    cell["nuts"] = nuts.record()
    cell["nuts ratio"] = nuts.ms / cell["mean ms"]
    cell["z"] = disagreement(points, nuts.mean, nuts.error)
    count = _peers.walkers(A.shape[1])
    if len(points) < count:
        points = np.array([measure.draw(i).point for i in range(count)])
    start = points[np.linspace(0, len(points) - 1, count).astype(int)]
    emcee = _peers.ensemble(loss, A, y, start, 15.0 if quick else EMCEE_BUDGET)
    cell["emcee"] = emcee.record()
    cell["emcee ratio"] = None if emcee.ms is None else emcee.ms / cell["mean ms"]


def compared(stream: Stream, t: int, quick: bool) -> Cell:
    """Return everything about one stream at one length: a row of the tables."""
    begin = time.perf_counter()
    rng = np.random.default_rng([stream.seed, stream.dim, t])
    A, y = stream.rounds(t, rng)
    measure = loaded(stream, A, y)
    cell: Cell = {"loss": stream.loss, "kind": stream.kind, "d": stream.dim, "t": t}
    cell |= measured(measure, rng, 200)
    if "slow" not in cell:
        add_peers(cell, stream.loss, A, y, measure, quick)
        del cell["points"]
    say(
        f"  {stream.loss} {stream.kind} d={stream.dim} t={t}:",
        cell.get("slow") or f"{cell['mean ms']:.3g} ms, {cell['nuts ratio']:.3g} x NUTS",
        f"({time.perf_counter() - begin:.0f} s)",
    )
    return cell


# Sections: each returns what it measured


def run_dense(quick: bool) -> list[Cell]:
    """Compare logistic and absolute losses on features from the cube."""
    cells = []
    for loss in ("logistic", "absolute"):
        for d in (1, 3, 10) if quick else (1, 3, 10, 30):
            stream = Stream(loss, "cube", d, inside_slope(d))
            compile_first(stream)
            cells += [compared(stream, t, quick) for t in ((10**4, 10**5) if quick else (10**4, 10**5, 10**6))]
    return cells


def run_paired(quick: bool) -> list[Cell]:
    """Compare with NUTS in turns, so that both see the same load of the machine."""
    cells = []
    for loss in ("logistic", "absolute"):
        stream = Stream(loss, "cube", 10)
        compile_first(stream)
        for t in (10**5,) if quick else (10**5, 10**6):
            cells.append({"loss": loss, "kind": "cube", "d": 10, "t": t} | paired(stream, t))
            say(f"  {loss} t={t}: {figure(cells[-1]['nuts ratio'])} x NUTS")
    return cells


def paired(stream: Stream, t: int) -> Cell:
    """Time a batch of draws after each piece of a NUTS chain; return the ratios."""
    import _peers

    rng = np.random.default_rng([stream.seed, stream.dim, t])
    A, y = stream.rounds(t, rng)
    measure = loaded(stream, A, y)
    start = measure.draw(rng).point
    batches: list[float] = []

    def batch() -> None:
        batches.append(time_draws(measure, rng, 200, 0.1)["mean ms"])

    warm_up, samples = (100, 80) if t > 200_000 else (300, 400)
    nuts = _peers.nuts(stream.loss, A, y, start, warm_up, samples, batch)
    ratios = [ms / ours for ms, ours in zip(nuts.pieces, batches, strict=True)]
    return {
        "mean ms": float(np.median(batches)), "nuts": nuts.record(), "nuts ratio": float(np.median(ratios)),
        "least": min(ratios), "most": max(ratios), "at best": min(nuts.pieces) / max(batches),
        "load": os.getloadavg()[0],
    }  # fmt: skip


def run_kinds(quick: bool) -> list[Cell]:
    """Compare absolute losses on other features."""
    cells = []
    for d in (10,) if quick else (10, 20):
        for kind in ("cube", "sparse", "binary", "one-hot", "heavy-tailed"):
            stream = Stream("absolute", kind, d)
            compile_first(stream)
            cells += [compared(stream, t, quick) for t in ((10**5,) if quick else (10**5, 10**6))]
    return cells


def run_private(quick: bool) -> list[Cell]:
    """Let rounds arrive in blocks with a draw after each."""
    t = 10**5 if quick else 10**6
    cells = []
    for loss in ("logistic", "absolute"):
        stream = Stream(loss, "cube", 10)
        compile_first(stream)
        cells.append({"loss": loss, "d": 10, "t": t} | private_run(stream, t))
        say(f"  {loss}: {cells[-1]['draw s']:.1f} s in draws, {cells[-1]['build s']:.1f} s in rebuilding")
    return cells


def private_run(stream: Stream, t: int) -> Cell:
    """Return where the time goes; making the data is not counted."""
    rng = np.random.default_rng([stream.seed, 3])
    measure = stream.measure()
    builds = watch_builds(measure, stream.loss)
    observe = 0.0
    times: list[float] = []
    pure: list[float] = []  # draws without the rebuilding inside them
    reads = 0
    A, y = stream.rounds(0, rng)
    while measure.rounds < t:
        if not len(y):
            A, y = stream.rounds(BLOCK * 1000, rng)
        count = min(BLOCK, t - measure.rounds)
        begin = time.perf_counter()
        measure.observe_many(A[:count], y[:count])
        observe += time.perf_counter() - begin
        A, y = A[count:], y[count:]
        before = sum(builds)
        begin = time.perf_counter()
        reads += measure.draw(rng).losses_read
        times.append(time.perf_counter() - begin)
        pure.append(times[-1] - (sum(builds) - before))
    return {
        "draws": len(times),
        "observe s": observe,
        "draw s": sum(pure),
        "build s": sum(builds),
        "builds": len(builds),
        "longest build s": max(builds, default=0.0),
        "longest draw ms": 1e3 * max(pure),
        "mean ms": 1e3 * sum(pure) / len(pure),
        "last tenth ms": 1e3 * float(np.mean(pure[-len(pure) // 10 :])),
        "losses read": reads / len(times),
    }


def watch_builds(measure: rt.Gibbs, loss: str) -> list[float]:
    """Return a list that grows by the seconds of every rebuild from now on."""
    method, name = ("curved", "_recentre") if loss == "logistic" else ("quartic", "_build")
    sampler = measure._sampler(method)
    build, spent = getattr(sampler, name), []

    def timed() -> None:
        spent.append(clock(build))

    setattr(sampler, name, timed)
    return spent


def run_memory(quick: bool) -> list[Cell]:
    """Measure the memory of a long past in processes of their own."""
    t = 10**5 if quick else 10**6
    cells = []
    for loss in ("logistic", "absolute"):
        command = [sys.executable, __file__, "--memory", loss, str(t)]
        found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.split()
        raw, used, kept = 8 * 10 * t, *map(int, found)
        cells.append(
            {"loss": loss, "d": 10, "t": t, "raw bytes": raw, "bytes": used, "multiple": used / raw, "kept": kept / raw}
        )
        say(f"  {loss}: {used / raw:.2f} times the raw data at the peak")
    return cells


def memory_child(loss: str, t: int) -> None:
    """Print by how many bytes the peak grew over the whole stream and a draw, and over the stream alone."""
    stream = Stream(loss, "cube", 10)
    compile_first(stream)
    rng = np.random.default_rng(4)
    measure = stream.measure()
    baseline = peak_memory()
    for _ in range(0, t, MEMORY_BLOCK):
        measure.observe_many(*stream.rounds(MEMORY_BLOCK, rng))
    observed = peak_memory()
    measure.draw(rng)
    print(peak_memory() - baseline, observed - baseline)


def run_growth(quick: bool) -> list[Cell]:
    """Count the losses that a draw reads as the past grows."""
    cells = []
    for slope in (1.0, 4.0):
        stream = Stream("logistic", "sphere", 10, slope)
        compile_first(stream)
        for t in (10**4, 10**5) if quick else (10**4, 10**5, 10**6):
            rng = np.random.default_rng([5, t])
            A, y = stream.rounds(t, rng)
            cell: Cell = {"slope": slope, "d": 10, "t": t}
            cell |= measured(loaded(stream, A, y), rng, 1000)
            if "slow" in cell:
                raise RuntimeError(f"{stream} after {t} rounds: {cell['slow']}")
            mean = cell.pop("points").mean(axis=0)
            cells.append(cell | {"norm of the mean": float(np.linalg.norm(mean))})
            say(f"  slope {slope:g}, t={t}: {cell['losses read']:.3g} losses read a draw")
    return cells


# Reporting: each section's Markdown


def compared_table(cells: list[Cell], kinds: bool) -> str:
    """Return the table of measure and peers."""
    heads = ["features" if kinds else "loss", "d", "t", "median ms", "mean ms", "99 % ms", "proposals", "losses read",
             "first draw s", "rebuild s", "NUTS ms/ES", "NUTS ratio", "emcee ms/ES", "emcee ratio"]  # fmt: skip
    rows = []
    for cell in cells:
        row = [name_of(cell["kind"] if kinds else cell["loss"]), str(cell["d"]), power(cell["t"])]
        if "slow" in cell:
            rows.append([*row, cell["slow"], *[None] * 10])
            continue
        keys = ("median ms", "mean ms", "99% ms", "proposals", "losses read", "first s", "rebuild s")
        nuts, emcee = cell["nuts"], cell["emcee"]
        rows.append([
            *row, *[cell[key] for key in keys],
            nuts["ms per effective sample"], cell["nuts ratio"], emcee["ms per effective sample"], cell["emcee ratio"],
        ])  # fmt: skip
    return table(heads, rows, text=1)


def name_of(kind: str) -> str:
    """Return the name of a kind of features in the report."""
    return {"cube": "dense uniform", "sparse": "sparse, 90 % zeros", "binary": "binary 0/1"}.get(kind, kind)


def power(t: int) -> str:
    """Return a power of ten in short."""
    return f"1e{round(math.log10(t))}"


def skipped(cells: list[Cell]) -> str:
    """Say why emcee has no figure in some rows, and where its chain was short."""
    notes = [(cell, cell["emcee"]["note"]) for cell in cells if "emcee" in cell]
    lines = [f"{short_name(cell)}: {note}" for cell, note in notes if "would take" in note]
    text = 'emcee was left out ("-") where a useful chain takes too long: ' + "; ".join(lines) + "." if lines else ""
    short = sum("short" in note for _, note in notes)
    if short:
        text += f" In {short} rows its chain was shorter than 20 autocorrelation times, which flatters it a little."
    return text.strip()


def short_name(cell: Cell) -> str:
    """Name a row of a table."""
    return f"{cell['loss']}, {name_of(cell['kind'])}, d = {cell['d']}, t = {power(cell['t'])}"


def dense_markdown(cells: list[Cell]) -> str:
    """Return section 1."""
    return f"""## 1. Logistic and absolute loss, dense features

Features uniform in the cube [-1, 1]^d / sqrt(d), unit ball, beta = {BETA}, lam = {LAM:,.0f}; targets from a
parameter of length 0.5: absolute loss with noise uniform on [-1, 1], labels from a logistic model of slope 4 in
d >= 10 and slope 1 in d = 1 and 3, where slope 4 would push the mode out of the ball. "median" is over single
warm draws, "mean" the median of {BATCHES} batch means; ratios are (peer's time per effective sample) / (mean time
per exact draw). In one dimension absolute losses are drawn on the line, where "proposals" counts density
evaluations and no losses are read. "rebuild" is one pass of what is done again now and then as the past grows.
Peers start from exact draws; NUTS warm-up and compilation are not counted; ES is the least over the coordinates.
Draws use numpy's PCG64 with a seed. Linear algebra of numpy runs on {os.environ["OPENBLAS_NUM_THREADS"]} thread(s),
jax on all cores.

{compared_table(cells, kinds=False)}

{skipped(cells)}

{agreement(cells)}"""


def agreement(cells: list[Cell]) -> str:
    """Say whether NUTS and the exact draws agree."""
    done = [cell for cell in cells if "slow" not in cell]
    z, norm, distance = (max(cell[key] for cell in done) for key in ("z", "largest norm", "distance"))
    return (
        f"Means of exact draws and of NUTS differ by at most {z:.1f} standard errors over {sum(c['d'] for c in done)}"
        f" coordinates; the largest norm among all draws is {norm:.2f} (the peers' target leaves the ball out)."
        f" Largest certified distance of any draw: {distance:g} (0 is exact)."
    )


def paired_markdown(cells: list[Cell]) -> str:
    """Return the repeated comparison."""
    heads = ["loss", "t", "mean ms", "NUTS ms/ES", "ratio, median", "least", "most", "NUTS at its best", "load"]
    rows = [
        [
            *(cell["loss"], power(cell["t"]), cell["mean ms"], cell["nuts"]["ms per effective sample"]),
            *(cell[key] for key in ("nuts ratio", "least", "most", "at best", "load")),
        ]
        for cell in cells
    ]
    return f"""### In turns with NUTS

d = 10 again: a batch of draws after each of the pieces of one NUTS chain, so that both see the same load of the
machine. "NUTS at its best" sets the fastest piece of NUTS against the slowest batch of draws; "load" is the system's
load average at the end. NUTS uses all cores and a draw one, so that a busy machine slows NUTS more: on an idle one
expect smaller ratios.

{table(heads, rows, text=1)}"""


def kinds_markdown(cells: list[Cell]) -> str:
    """Return section 2."""
    return f"""## 2. Absolute loss, other features

As section 1; binary features are divided by sqrt(d); heavy-tailed ones are Student t with 3 degrees of freedom, of mean
square length 1, rows longer than 1 scaled to length 1.

{compared_table(cells, kinds=True)}

{skipped(cells)}

{agreement(cells)}"""


def private_markdown(cells: list[Cell]) -> str:
    """Return section 3."""
    heads = ["loss", "rounds", "draws", "observing s", "drawing s", "rebuilding s", "rebuilds", "longest rebuild s",
             "mean draw ms", "last tenth, mean ms", "longest draw ms", "losses read"]  # fmt: skip
    keys = ("draws", "observe s", "draw s", "build s", "builds", "longest build s", "mean ms", "last tenth ms",
            "longest draw ms", "losses read")  # fmt: skip
    rows = [[cell["loss"], power(cell["t"]), *[cell[key] for key in keys]] for cell in cells]
    verdicts = [
        f"For the {cell['loss']} loss rebuilding takes {cell['build s'] / cell['draw s']:.2f} times as long as drawing"
        f" ({'below' if cell['build s'] < cell['draw s'] else 'NOT below'} draw time)."
        for cell in cells
    ]
    return f"""## 3. A private run

d = 10, dense features, labels of slope 4; rounds arrive in blocks of {BLOCK}, with a draw after each block.
"drawing" is without the rebuilding inside draws.

{table(heads, rows, text=1)}

{" ".join(verdicts)}"""


def memory_markdown(cells: list[Cell]) -> str:
    """Return section 4."""
    heads = ["loss", "rounds", "raw MB", "peak growth MB", "multiple of raw", "of which before the draw"]
    rows = [[c["loss"], power(c["t"]), c["raw bytes"] / 1e6, c["bytes"] / 1e6, c["multiple"], c["kept"]] for c in cells]
    return f"""## 4. Memory

Growth of the peak resident size while d = 10 float64 rows are observed in blocks of {MEMORY_BLOCK}, made block
by block, and one draw follows; each in its own process, after compilation. "raw" is the features alone.

{table(heads, rows, text=1)}"""


def growth_markdown(cells: list[Cell]) -> str:
    """Return section 5."""
    heads = ["slope", "t", "losses read a draw", "most", "proposals", "mean ms", "norm of the mean"]
    keys = ("losses read", "most losses read", "proposals", "mean ms", "norm of the mean")
    rows = [[cell["slope"], power(cell["t"]), *[cell[key] for key in keys]] for cell in cells]
    return f"""## 5. Cost against t

Logistic loss, d = 10, features uniform on the sphere. Slope 1 keeps the mode inside the ball; slope 4 drives it
to the boundary as t grows.

{table(heads, rows)}"""


# The conclusions


def targets(results: dict[str, Any]) -> list[list[str]]:
    """Return what was aimed at beside what was measured."""
    cells = {(c["loss"], c["d"], c["t"]): c for c in results.get("dense", []) + results.get("paired", [])}
    wanted = [
        ("logistic", 10, 10**5, "nuts ratio", ">=", 200.0, "NUTS ratio"),
        ("logistic", 10, 10**6, "nuts ratio", ">=", 1000.0, "NUTS ratio"),
        ("absolute", 1, 10**6, "mean ms", "<=", 0.1, "ms per draw"),
        ("absolute", 3, 10**6, "mean ms", "<=", 1.0, "ms per draw"),
        ("absolute", 10, 10**6, "mean ms", "<=", 5.0, "ms per draw"),
    ]
    rows = []
    for loss, d, t, key, sign, goal, name in wanted:
        cell = cells.get((loss, d, t))
        if cell is None:
            continue
        value = cell.get(key)
        met = value is not None and (value >= goal if sign == ">=" else value <= goal)
        label = f"{loss}, d = {d}, t = {power(t)}"
        rows.append([label, f"{name} {sign} {goal:g}", figure(value), "met" if met else "MISSED"])
    for cell in results.get("private", []):
        ratio = cell["build s"] / cell["draw s"]
        label = f"{cell['loss']}, private run of {power(cell['t'])}"
        rows.append([label, "rebuild / draw time < 1", figure(ratio), "met" if ratio < 1 else "MISSED"])
    return rows


def where(cell: Cell) -> str:
    """Name a cell in a sentence."""
    return f"{cell['loss']} loss, {name_of(cell['kind'])} features, d = {cell['d']}, t = {power(cell['t'])}"


def slow_draws(done: list[Cell]) -> list[str]:
    """Name the slowest draws, first draws and tails."""
    slowest = sorted(done, key=lambda c: -c["mean ms"])[:3]
    named = [
        f"{where(c)}: {figure(c['mean ms'])} ms a draw ({figure(c['proposals'])} proposals,"
        f" {figure(c['losses read'])} losses read)"
        for c in slowest
    ]
    first = max(done, key=lambda c: c["first s"])
    tail = max(done, key=lambda c: c["99% ms"] / c["median ms"])
    return [
        "The slowest draws: " + "; ".join(named) + ".",
        f"The first draw is dearest for {where(first)}: {figure(first['first s'])} s, as much as"
        f" {figure(1e3 * first['first s'] / first['mean ms'])} draws; a rebuild there takes"
        f" {figure(first['rebuild s'])} s.",
        f"Draws are least even for {where(tail)}: the 99 % point is"
        f" {figure(tail['99% ms'] / tail['median ms'])} times the median.",
    ]


def near_peers(done: list[Cell]) -> list[str]:
    """Say where peers come close or win."""
    closest = sorted(done, key=lambda c: c["nuts ratio"])[:3]
    named = [f"{where(c)} ({figure(c['nuts ratio'])} x)" for c in closest]
    lost = sum(c["nuts ratio"] < 1 for c in done)
    win = f"NUTS is faster per effective sample in {lost} of {len(done)} rows." if lost else ""
    return ["NUTS comes closest in " + "; ".join(named) + ".", win]


def short_pasts(done: list[Cell]) -> list[str]:
    """Name cases where a draw costs more after fewer rounds."""
    cells = {(c["loss"], c["kind"], c["d"], c["t"]): c for c in done}
    named = []
    for (loss, kind, d, t), cell in cells.items():
        longer = cells.get((loss, kind, d, 10 * t))
        if longer is not None and cell["median ms"] > 1.3 * longer["median ms"]:
            named.append(
                f"{short_name(cell)} ({figure(cell['median ms'])} ms, but {figure(longer['median ms'])} ms"
                f" after {power(10 * t)})"
            )
    return ["A median draw takes longer after fewer rounds in " + "; ".join(named) + "."] if named else []


def weak_spots(results: dict[str, Any]) -> str:
    """Say from the numbers where the ladder is slow."""
    cells = results.get("dense", []) + results.get("kinds", [])
    done = [cell for cell in cells if "slow" not in cell]
    sentences = slow_draws(done) + near_peers(done) + short_pasts(done) if done else []
    given_up = [f"{where(c)} ({c['slow']})" for c in cells if "slow" in c]
    if given_up:
        sentences.append("No draw in time: " + "; ".join(given_up) + ".")
    sentences += [
        f"In the private run of the {cell['loss']} loss the longest rebuild takes {figure(cell['longest build s'])} s,"
        f" and all {figure(cell['builds'])} of them {figure(cell['build s'])} s beside {figure(cell['draw s'])} s of"
        f" drawing and {figure(cell['observe s'])} s of observing."
        for cell in results.get("private", [])
    ]
    missed = [f"{row[0]}: {row[1]}, got {row[2]}" for row in targets(results) if row[3] == "MISSED"]
    if missed:
        sentences.append("Missed targets: " + "; ".join(missed) + ".")
    return " ".join(filter(None, sentences))


SECTIONS: dict[str, tuple[Callable[[bool], list[Cell]], Callable[[list[Cell]], str]]] = {
    "dense": (run_dense, dense_markdown),
    "paired": (run_paired, paired_markdown),
    "kinds": (run_kinds, kinds_markdown),
    "private": (run_private, private_markdown),
    "memory": (run_memory, memory_markdown),
    "growth": (run_growth, growth_markdown),
}


def report(results: dict[str, Any]) -> str:
    """Return the whole report."""
    quick = " (quick run)" if results["quick"] else ""
    parts = [f"# Exact draws{quick}", facts_markdown(results["facts"])]
    parts.append(
        "Timings come from a shared machine: compare within a row, whose figures come from one process, rather than"
        f" between runs. Sections ended at: {', '.join(f'{k} {date}' for k, date in results['runs'].items())}."
    )
    goals = targets(results)
    if goals:
        parts.append("## Targets\n\n" + table(["case", "target", "measured", ""], goals, text=4))
    if "paired" in results:
        parts.append("Ratios and times per draw in d = 10 are those measured in turns with NUTS (below).")
    parts += [markdown(results[name]) for name, (_, markdown) in SECTIONS.items() if name in results]
    parts.append("## Where it is slow\n\n" + weak_spots(results))
    return "\n\n".join(parts)


def main() -> None:
    """Run the sections and write the report after each."""
    parser = section_parser(__doc__, __file__, SECTIONS, "short pasts, a few minutes")
    parser.add_argument("--memory", nargs=2, metavar=("LOSS", "ROUNDS"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory:
        memory_child(args.memory[0], int(args.memory[1]))
        return
    run_sections(args, SECTIONS, ("numpy", "numba", "jax", "blackjax", "emcee", "reticent"), report)


if __name__ == "__main__":
    main()
