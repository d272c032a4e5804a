"""Benchmark of the learner: time beside river's logistic regression, rounds per second, memory, cost against T.

python bench/learner.py [--quick] [--out bench/results/learner.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # beside another busy process two threads of OpenBLAS can be 40 times slower

import argparse
import math
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

_BEGIN = time.perf_counter()
import reticent as rt

IMPORTED = time.perf_counter() - _BEGIN  # seconds
from _report import facts_markdown, figure, peak_memory, run_sections, say, section_parser, table
from _streams import BETA, LAM, Stream, features

Cell = dict[str, Any]

P, PHI, BATCH, BUDGET = 0.23, math.exp(0.175), 32, 11_500
DIM = 10
PIECE = 10_000  # rows after which the next contestant has its turn
LINEAR_BLOCK = 100_000
MEMORY_BLOCK = 1000
SEEDS = {"None": None, "int": 1}
KINDS = {"cube": "in the cube", "sphere": "of length 1"}


# What is run


def private_plan(horizon: int, dim: int = DIM, budget: int | None = BUDGET) -> rt.Plan:
    """Return the plan of a private run of a million rounds, with its rates for any horizon."""
    return rt.Plan(
        rt.Ball(dim), horizon, 1.0, beta=BETA, lam=LAM, p=P, phi=PHI, budget=budget, batch=BATCH
    )  # fmt: skip


def expected_draws(rounds: int) -> float:
    """Return the expected number of draws of the coin: forced switches, auxiliary draws, and the switches after them.

    At most this: it counts a draw after every auxiliary one.
    """
    return rounds // BATCH * (P + 2 * (1 - P) * (1 - PHI**-2))


def draws_deviation(rounds: int) -> float:
    """Return the standard deviation of that number, were every auxiliary draw followed by another."""
    coins, look = rounds // BATCH, (1 - P) * (1 - PHI**-2)
    return math.sqrt(coins * (P + 4 * look - (P + 2 * look) ** 2))


def stream_of(loss: str, dim: int, count: int, seed: int = 1) -> tuple[rt.Loss, tuple[np.ndarray, ...]]:
    """Return a loss and the data of so many rounds for it, of slope at most 1 on the unit ball."""
    rng = np.random.default_rng([seed, dim, count])
    if loss == "linear":
        return rt.Linear(), (features("sphere", count, dim, rng),)
    if loss == "logistic":
        return rt.Logistic(), Stream("logistic", "cube", dim).rounds(count, rng)
    A, y = Stream("absolute", "cube", dim).rounds(count, rng)
    if loss == "squared":
        return rt.Squared(), (0.5 * A, 0.25 * y)
    if loss == "hinge":
        return rt.Hinge(), (A, np.where(y > 0, 1.0, -1.0))
    return {"absolute": rt.Absolute(), "huber": rt.Huber(0.5), "pinball": rt.Pinball(0.3)}[loss], (A, y)


def warm(plan: rt.Plan, loss: rt.Loss, data: tuple[np.ndarray, ...]) -> None:
    """Let numba compile, or load, what a run needs, on a short stream."""
    short = tuple(part[:5000] for part in data)
    for seed in SEEDS.values():
        learner = rt.PCOMW(plan, loss, seed)
        learner.observe_many(*short)
        for row in zip(*(part[:300] for part in data), strict=True):
            learner.observe(*row)


def count_draws(learner: rt.PCOMW) -> list[int]:
    """Return a list whose length is the number of draws from now on; the first decision has been drawn before."""
    measure = learner._walk.measure
    draw, found = measure.draw_in_chart, []

    def counted(*args: Any) -> Any:
        found.append(1)
        return draw(*args)

    measure.draw_in_chart = counted
    return found


def spread(values: list[float]) -> Cell:
    """Return the median, the least and the most."""
    return {"median": float(np.median(values)), "least": min(values), "most": max(values)}


# Section 1: the private run beside river


def run_private(quick: bool) -> Cell:
    """Time the private run in turns with river's loop."""
    t, repetitions = (10**5, 2) if quick else (10**6, 5)
    loss, (A, y) = stream_of("logistic", DIM, t)
    plan = private_plan(t)
    warm(plan, loss, (A, y))
    found: list[Cell] = []
    for number in range(repetitions):
        found.append(private_turn(plan, A, y, number))
        ratios = ", ".join(f"{k} {v / found[-1]['river']:.2f}" for k, v in found[-1].items() if k != "river")
        say(f"  repetition {number + 1}: river {1e6 * found[-1]['river'] / t:.2f} us a round; ratios {ratios}")
    names = [name for name in found[0] if name != "river"]
    rows = [
        {
            "way": name.split("|")[0],
            "seed": name.split("|")[1],
            "us": spread([1e6 * times[name] / t for times in found]),
            "ratio": spread([times[name] / times["river"] for times in found]),
        }
        for name in names
    ]
    return {
        "t": t,
        "repetitions": repetitions,
        "river us": spread([1e6 * times["river"] / t for times in found]),
        "rows": rows,
        "runs": [private_counts(plan, A, y, name) for name in SEEDS],
        "profile": profile(plan, loss, [(A[i : i + PIECE], y[i : i + PIECE]) for i in range(0, t, PIECE)]),
        "load": os.getloadavg()[0],
    }


def private_turn(plan: rt.Plan, A: np.ndarray, y: np.ndarray, number: int) -> dict[str, float]:
    """Return the seconds of every way to run over the whole stream, taken piece by piece in turns where that goes."""
    from river import linear_model

    model = linear_model.LogisticRegression()
    spent = {"river": 0.0}
    for seed in SEEDS:
        spent |= {f"observe_many, blocks of {PIECE:,}|{seed}": 0.0, f"observe, row by row|{seed}": 0.0}
    learners = {name: rt.PCOMW(plan, rt.Logistic(), SEEDS[name.split("|")[1]]) for name in spent if name != "river"}
    names = list(spent)
    for start in range(0, len(y), PIECE):
        features, targets = A[start : start + PIECE], y[start : start + PIECE]
        rows = [dict(enumerate(row)) for row in features.tolist()]
        labels = (targets > 0).tolist()
        # Whoever comes first in one piece comes later in the next.
        shift = (number + start // PIECE) % len(names)
        for name in names[shift:] + names[:shift]:
            begin = time.perf_counter()
            if name == "river":
                for x, label in zip(rows, labels, strict=True):
                    model.learn_one(x, label)
            elif name.startswith("observe_many"):
                learners[name].observe_many(features, targets)
            else:
                learner = learners[name]
                for row, target in zip(features, targets, strict=True):
                    learner.observe(row, target)
            spent[name] += time.perf_counter() - begin
    for seed, value in SEEDS.items():
        learner = rt.PCOMW(plan, rt.Logistic(), value)
        begin = time.perf_counter()
        learner.observe_many(A, y)
        spent[f"observe_many, all at once|{seed}"] = time.perf_counter() - begin
    return spent


def private_counts(plan: rt.Plan, A: np.ndarray, y: np.ndarray, seed: str) -> Cell:
    """Run once more and count."""
    learner = rt.PCOMW(plan, rt.Logistic(), SEEDS[seed])
    draws = count_draws(learner)
    trace = learner.observe_many(A, y)
    regret = trace.regret()
    return {
        "seed": seed,
        "switches": learner.switches,
        "budget": plan.budget,
        "frozen": learner.frozen,
        "draws": len(draws),
        "expected draws": expected_draws(len(y)),
        "regret": regret.value,
        "gap": regret.gap,
    }


# Section 2: rows of length 1


def run_unit(quick: bool) -> Cell:
    """Time the private run in turns with river's loop on rows scaled to length 1."""
    t, repetitions = (2 * 10**4, 2) if quick else (10**5, 3)
    rng = np.random.default_rng(2)
    stream = Stream("logistic", "sphere", DIM)
    A, y = stream.rounds(t, rng)
    plan = private_plan(t)
    warm(plan, rt.Logistic(), (A, y))
    found = [private_turn(plan, A, y, number) for number in range(repetitions)]
    rows = [
        {
            "way": name.split("|")[0],
            "seed": name.split("|")[1],
            "us": spread([1e6 * times[name] / t for times in found]),
            "ratio": spread([times[name] / times["river"] for times in found]),
        }
        for name in found[0]
        if name.endswith("None")
    ]
    for row in rows:
        say(f"  {row['way']}: {row['ratio']['median']:.2f} times river's loop")
    river = spread([1e6 * times["river"] / t for times in found])
    longer = float(np.mean(np.einsum("ij,ij->i", A, A) > 1.0))
    return {"t": t, "repetitions": repetitions, "river us": river, "rows": rows, "longer than 1": longer}


# Where the time goes


@contextmanager
def timed(owner: Any, name: str, spent: dict[str, float], label: str) -> Iterator[None]:
    """Add the seconds spent in a function, from outside, to `spent[label]`."""
    plain = owner.__dict__[name]
    function = plain.__func__ if isinstance(plain, classmethod) else plain

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        begin = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[label] = spent.get(label, 0.0) + time.perf_counter() - begin

    setattr(owner, name, classmethod(wrapped) if isinstance(plain, classmethod) else wrapped)
    try:
        yield
    finally:
        setattr(owner, name, plain)


def profile(plan: rt.Plan, loss: rt.Loss, blocks: list[tuple[np.ndarray, ...]]) -> dict[str, float]:
    """Return the seconds that `observe_many` spends in its parts; measuring them costs a little itself."""
    from reticent.systems.pcomw import _kernels

    learner = rt.PCOMW(plan, loss, 1)
    spent: dict[str, float] = {}
    with (
        timed(rt.Gibbs, "prepare", spent, "checking rows"),
        timed(rt.Gibbs, "add", spent, "storing rows"),
        timed(rt.Gibbs, "draw_in_chart", spent, "draws"),
        timed(_kernels.LinearWalk, "take", spent, "compiled walk"),
        timed(type(loss), "total", spent, "losses of a batch") if "total" in type(loss).__dict__ else nothing(),
        timed(rt.Trace, "record", spent, "trace and losses suffered"),
    ):
        begin = time.perf_counter()
        for block in blocks:
            learner.observe_many(*block)
        whole = time.perf_counter() - begin
    return {"whole": whole} | spent | {"the rest": whole - sum(spent.values())}


@contextmanager
def nothing() -> Iterator[None]:
    """Do nothing."""
    yield


# Section 3: compilation


def run_compile(quick: bool) -> list[Cell]:
    """Time first use in new processes: with nothing compiled before, and again."""
    cells = []
    for loss in ("linear",) if quick else ("logistic", "linear"):
        with tempfile.TemporaryDirectory() as folder:
            environment = os.environ | {"NUMBA_CACHE_DIR": folder}
            cell: Cell = {"loss": loss}
            for key in ("nothing compiled s", "compiled before s"):
                command = [sys.executable, __file__, "--first", loss]
                done = subprocess.run(
                    command, check=True, capture_output=True, text=True, timeout=400, env=environment
                )  # fmt: skip
                cell[key], cell["import s"] = map(float, done.stdout.split())
        cells.append(cell)
        say(f"  {loss}: {cell['nothing compiled s']:.1f} s, again {cell['compiled before s']:.2f} s")
    return cells


def first_child(loss: str) -> None:
    """Print the seconds of a first short run, and of importing what is not compiled."""
    kind, data = stream_of(loss, DIM, 5000)
    plan = private_plan(5000)
    begin = time.perf_counter()
    rt.PCOMW(plan, kind, 1).observe_many(*data)
    print(time.perf_counter() - begin, IMPORTED)


# Section 4: linear losses


def run_linear(quick: bool) -> list[Cell]:
    """Count rounds per second in blocks."""
    t = 10**6
    cells = []
    for d, kind in ((d, kind) for d in (2, DIM, 100) for kind in ("cube", "sphere")):
        repetitions = 3 if quick or d == 100 else 7
        loss, A = rt.Linear(), features(kind, 2 * LINEAR_BLOCK, d, np.random.default_rng(d))
        blocks = [(A[:LINEAR_BLOCK],), (A[LINEAR_BLOCK:],)] * (t // LINEAR_BLOCK // 2)
        for name, plan in (
            ("private", private_plan(t, d)),
            ("lazy, 1,000 switches", rt.plan_lazy(rt.Ball(d), t, 1.0, 1000)),
        ):
            warm(plan, loss, (A,))
            speeds: dict[str, list[float]] = {seed: [] for seed in (*SEEDS, "CPU")}
            switches: list[int] = []
            for _ in range(repetitions):
                for seed, value in SEEDS.items():
                    learner = rt.PCOMW(plan, loss, value)
                    begin, begin_cpu = time.perf_counter(), time.process_time()
                    for block in blocks:
                        learner.observe_many(*block)
                    speeds[seed].append(t / (time.perf_counter() - begin) / 1e6)
                    speeds["CPU"].append(t / (time.process_time() - begin_cpu) / 1e6)
                    switches.append(learner.switches)
            cell: Cell = {"plan": name, "kind": kind, "d": d, "t": t, "switches": float(np.mean(switches))}
            cell |= {f"M/s {seed}": spread(values) for seed, values in speeds.items()}
            cell |= {"sum GB/s": read_speed(A), "profile": profile(plan, loss, blocks)}
            cells.append(cell)
            say(f"  d={d}, {kind}, {name}: {cell['M/s None']['median']:.1f} million rounds a second")
    return cells


def read_speed(A: np.ndarray) -> float:
    """Return the gigabytes per second at which numpy adds up the rows: what reading them once costs here."""
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        A.sum(axis=0)
        times.append(time.perf_counter() - begin)
    return A.nbytes / float(np.median(times)) / 1e9


# Section 5: other losses


def run_losses(quick: bool) -> list[Cell]:
    """Time the other losses."""
    t, repetitions = (2 * 10**4, 2) if quick else (10**5, 3)
    cells = []
    for name, d in (
        *(("absolute", d) for d in (1, 3, DIM)), ("pinball", 1), ("hinge", DIM), ("huber", DIM), ("squared", DIM),
        ("logistic", DIM),
    ):  # fmt: skip
        loss, data = stream_of(name, d, t)
        plan = private_plan(t, d)
        warm(plan, loss, data)
        times = []
        for seed in range(repetitions):
            learner = rt.PCOMW(plan, loss, seed)
            draws = count_draws(learner)
            begin = time.process_time()
            learner.observe_many(*data)
            times.append(1e6 * (time.process_time() - begin) / t)
        method = learner._walk.measure._default()
        cells.append(
            {"loss": name, "d": d, "t": t, "us": spread(times), "switches": learner.switches, "draws": len(draws),
             "method": method}
        )  # fmt: skip
        say(f"  {name} d={d}: {cells[-1]['us']['median']:.2f} us a round")
    return cells


# Section 6: memory


def run_memory(quick: bool) -> list[Cell]:
    """Measure the memory of long runs in processes of their own."""
    cells = []
    for loss in ("logistic", "linear"):
        for t in (10**5, 4 * 10**5) if quick else (10**6, 4 * 10**6):
            command = [sys.executable, __file__, "--memory", loss, str(t)]
            done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.split()
            used, pickled, switches = map(int, done)
            raw = 8 * DIM * t
            cells.append(
                {"loss": loss, "d": DIM, "t": t, "raw bytes": raw, "bytes": used, "multiple": used / raw,
                 "pickle bytes": pickled, "switches": switches}
            )  # fmt: skip
            say(f"  {loss}, {t} rounds: {used / 1e6:.1f} MB more at the peak, a pickle of {pickled / 1e6:.1f} MB")
    return cells


class Counter:
    """A file that only counts what is written."""

    size = 0

    def write(self, data: Any) -> None:
        """Count the bytes."""
        self.size += memoryview(data).nbytes


def memory_child(name: str, t: int) -> None:
    """Print by how many bytes the peak grew over a run, the size of its pickle, and the switches."""
    loss, data = stream_of(name, DIM, 20_000)
    plan = private_plan(t, budget=None)  # a spent budget would free the past
    warm(plan, loss, data)
    learner = rt.PCOMW(plan, loss)
    learner.observe_many(*(part[:MEMORY_BLOCK] for part in data))
    baseline = peak_memory()
    for i in range(1, t // MEMORY_BLOCK):
        learner.observe_many(*stream_of(name, DIM, MEMORY_BLOCK, i)[1])
    used = peak_memory() - baseline
    file = Counter()
    pickle.Pickler(file, protocol=5).dump(learner)
    print(used, file.size, learner.switches)


# Section 7: cost against T


def run_growth(quick: bool) -> list[Cell]:
    """Time runs of different lengths at the same rates."""
    cells = []
    for name in ("logistic", "linear", "absolute"):
        for t in (10**4, 10**5) if quick else (10**4, 10**5, 10**6):
            loss, data = stream_of(name, DIM, t)
            plan = private_plan(t, budget=None)
            warm(plan, loss, data)
            times, last = [], []
            for seed in range(1 if t == 10**6 and name == "absolute" else 3):
                learner = rt.PCOMW(plan, loss, seed)
                draws = None if name == "linear" else count_draws(learner)
                pieces = []
                for i in range(0, t, t // 10):
                    begin = time.process_time()
                    learner.observe_many(*(part[i : i + t // 10] for part in data))
                    pieces.append(time.process_time() - begin)
                times.append(1e6 * sum(pieces) / t)
                last.append(1e7 * pieces[-1] / t)
            count = None if draws is None else len(draws)
            cells.append(
                {"loss": name, "d": DIM, "t": t, "us": spread(times), "last tenth us": float(np.median(last)),
                 "switches": learner.switches, "draws": count, "at most": expected_draws(t)}
            )  # fmt: skip
            say(f"  {name} T={t}: {cells[-1]['us']['median']:.3g} us a round")
    return cells


# Reporting: each section's Markdown


def power(t: int) -> str:
    """Return a round number in short."""
    exponent = math.floor(math.log10(t))
    return f"{t / 10**exponent:g}e{exponent}"


def with_range(found: Cell) -> str:
    """Return a median with the least and the most."""
    return f"{figure(found['median'])} ({figure(found['least'])} to {figure(found['most'])})"


def shares(found: dict[str, float]) -> str:
    """Say what part of the time went where."""
    parts = sorted(((v, k) for k, v in found.items() if k != "whole"), reverse=True)
    return ", ".join(f"{name} {100 * v / found['whole']:.0f} %" for v, name in parts if v > 0.005 * found["whole"])


def private_markdown(found: Cell) -> str:
    """Return section 1."""
    rows = [[row["way"], row["seed"], with_range(row["us"]), with_range(row["ratio"])] for row in found["rows"]]
    rows.append(["river `LogisticRegression().learn_one`", "", with_range(found["river us"]), "1"])
    heads = ["run", "switches", "of the budget", "frozen", "draws", "at most, expected", "regret"]
    counts = [
        [f"seed {run['seed']}", run["switches"], run["budget"], "yes" if run["frozen"] else "no", run["draws"],
         run["expected draws"], f"{figure(run['regret'])} (+ {figure(run['gap'])})"]
        for run in found["runs"]
    ]  # fmt: skip
    return f"""## 1. A private run beside river

T = {power(found["t"])}, d = {DIM}, logistic loss on the unit ball, lipschitz 1, beta = {BETA}, lam = {LAM:,.0f},
p = {P}, batch = {BATCH}, phi = exp(0.175), budget {BUDGET:,}; features uniform in the cube [-1, 1]^d / sqrt(d). Seed
"None" is the cryptographic generator, which a private run needs; "int" is PCG64. Median over {found["repetitions"]}
repetitions of the whole stream, least and most in brackets, after compilation. River and the learners in blocks and
row by row take turns every {PIECE:,} rows, in changing order; "all at once" follows in the same repetition. River's
rows are dicts made beforehand and not counted; for `observe` taking rows out of the arrays is counted.
`observe_many` also returns the trace, with every loss suffered; river's loop predicts nothing beside its update.

{table(["", "seed", "us per round", "times river's loop"], rows, text=2)}

{table(heads, counts, text=1)}

"at most, expected" is n (p + 2 (1 - p)(1 - phi^-2)) with n coins, for which every auxiliary draw is followed by
another. The regret is from `trace.regret()`, with the certified gap in brackets.

Where `observe_many` spends its time (blocks of {PIECE:,}, {figure(1e6 * found["profile"]["whole"] / found["t"])} us a
round when measured in parts): {shares(found["profile"])}."""


def unit_markdown(found: Cell) -> str:
    """Return section 2."""
    rows = [[row["way"], with_range(row["us"]), with_range(row["ratio"])] for row in found["rows"]]
    rows.append(["river `LogisticRegression().learn_one`", with_range(found["river us"]), "1"])
    slow = next(row for row in found["rows"] if row["way"].startswith("observe,"))["ratio"]["median"] > 1.5
    words = (
        "A round that is not plainly within the limit goes through the full check by itself, which is slow: scale such"
        " rows to a length a little below the limit, or hand them over in blocks."
        if slow
        else "Such rows cost about as much as others."
    )
    return f"""## 2. The same with rows of length 1

As section 1 at T = {power(found["t"])}, seed None, but features scaled to length 1, which is the limit:
{100 * found["longer than 1"]:.0f} % of them come out longer than 1 by a rounding error.
{words}

{table(["", "us per round", "times river's loop"], rows, text=1)}"""


def compile_markdown(cells: list[Cell]) -> str:
    """Return section 3."""
    heads = ["loss", "nothing compiled, s", "compiled before, s", "importing reticent, s"]
    rows = [[c["loss"], c["nothing compiled s"], c["compiled before s"], c["import s"]] for c in cells]
    return f"""## 3. Compilation

The first 5,000 rounds of a new process, d = {DIM}: with nothing compiled, which happens once after installation, and
with kernels from numba's cache on disk. The other sections do not count this.

{table(heads, rows, text=1)}"""


def linear_markdown(cells: list[Cell]) -> str:
    """Return section 4."""
    heads = [
        "plan",
        "gradients",
        "d",
        "seed None",
        "seed int",
        "per CPU second",
        "switches",
        "GB/s read",
        "numpy's sum, GB/s",
    ]
    rows = [
        [c["plan"], KINDS[c["kind"]], str(c["d"]), with_range(c["M/s None"]), with_range(c["M/s int"]),
         with_range(c["M/s CPU"]), c["switches"], 8e-3 * c["d"] * c["M/s None"]["median"], c["sum GB/s"]]
        for c in cells
    ]  # fmt: skip
    lines = [f"- {c['plan']}, {KINDS[c['kind']]}, d = {c['d']}: {shares(c['profile'])}." for c in cells]
    return f"""## 4. Linear losses on the ball

Million rounds per second through `observe_many` in blocks of {LINEAR_BLOCK:,}, T = {power(cells[0]["t"])}, checks and
the trace's losses included: median (least to most). "private" is the plan of section 1. "per CPU second" leaves out
time in which other processes had the core. The last two columns are the rate at which gradients come in, and for
comparison that of numpy's `A.sum(axis=0)` over two blocks. Gradients are uniform in the cube [-1, 1]^d / sqrt(d), or
uniform on the sphere, scaled to length 1 in floating point: some of these come out longer than 1 by a rounding error.

{table(heads, rows, text=2)}

Where the time goes:

{chr(10).join(lines)}"""


def losses_markdown(cells: list[Cell]) -> str:
    """Return section 5."""
    heads = ["loss", "sampler", "d", "CPU us per round", "switches", "draws"]
    rows = [[c["loss"], c["method"], str(c["d"]), with_range(c["us"]), c["switches"], c["draws"]] for c in cells]
    return f"""## 5. Other losses

T = {power(cells[0]["t"])} at once, the plan of section 1; dense features, targets with noise uniform on [-1, 1]
(squared loss: features halved, targets quartered, so that slopes stay below 1). "sampler" is the method of draws at
the end.

{table(heads, rows, text=2)}"""


def memory_markdown(cells: list[Cell]) -> str:
    """Return section 6."""
    heads = ["loss", "rounds", "raw MB", "peak growth MB", "multiple of raw", "pickle MB", "switches"]
    rows = [
        [c["loss"], power(c["t"]), c["raw bytes"] / 1e6, c["bytes"] / 1e6, c["multiple"], c["pickle bytes"] / 1e6,
         c["switches"]]
        for c in cells
    ]  # fmt: skip
    return f"""## 6. Memory

Growth of the peak resident size over a run in blocks of {MEMORY_BLOCK:,} rows made on the fly, d = {DIM}, traces
dropped; each in its own process, after compilation. The plan of section 1 without a budget, because a learner whose
budget is spent forgets the past. "raw" is the features alone.

{table(heads, rows, text=1)}"""


def growth_markdown(cells: list[Cell]) -> str:
    """Return section 7."""
    heads = ["loss", "T", "CPU us per round", "last tenth, CPU us", "switches", "draws", "draws, at most expected"]
    rows = [
        [c["loss"], power(c["t"]), with_range(c["us"]), c["last tenth us"], c["switches"], c["draws"],
         c["at most"]]
        for c in cells
    ]  # fmt: skip
    return f"""## 7. Cost against T

d = {DIM}, the rates of section 1 and no budget, ten blocks a run. Draws grow with T because coins do; their
number per coin is fixed. (Linear losses are drawn inside compiled code, which does not count.) Cost
per round does not grow for logistic and linear losses up to a million rounds. It does for the absolute loss: after a
dear start, the last tenth of a million rounds costs many times that of 1e5, as each draw needs more proposals
(bench/results/draws.md).

{table(heads, rows, text=1)}"""


def targets(results: dict[str, Any]) -> list[list[str]]:
    """Return what was aimed at beside what was measured."""
    rows = []
    found = results.get("private")
    for row in found["rows"] if found else []:
        goal = 1.5 if row["way"].startswith("observe,") else 1.0
        ratio = row["ratio"]["median"]
        label = f"{row['way']}, seed {row['seed']}, T = {power(found['t'])}"
        rows.append([label, f"times river's loop <= {goal}", with_range(row["ratio"]), verdict(ratio <= goal)])
    unit = results.get("unit")
    for row in unit["rows"] if unit else []:
        goal = 1.5 if row["way"].startswith("observe,") else 1.0
        label = f"rows of length 1: {row['way']}, seed {row['seed']}, T = {power(unit['t'])}"
        met = verdict(row["ratio"]["median"] <= goal)
        rows.append([label, f"times river's loop <= {goal}", with_range(row["ratio"]), met])
    for run in found["runs"] if found else []:
        limit = 1.1 * run["expected draws"] + 5 * draws_deviation(found["t"])
        rows.append(
            [f"draws, seed {run['seed']}", f"<= {figure(limit)}", figure(run["draws"]), verdict(run["draws"] <= limit)]
        )
    for cell in results.get("linear", []):
        clock, cpu = cell["M/s None"], cell["M/s CPU"]
        label = f"linear, {cell['plan']}, {KINDS[cell['kind']]}, d = {cell['d']}"
        measured = f"{with_range(clock)}; per CPU second {figure(cpu['median'])}"
        word = verdict(clock["median"] >= 5.0)
        if clock["median"] < 5.0 <= cpu["median"]:
            word += " by the clock, met per CPU second"
        rows.append([label, "million rounds per second >= 5", measured, word])
    return rows


def verdict(met: bool) -> str:
    """Say whether a target was met."""
    return "met" if met else "MISSED"


SECTIONS: dict[str, tuple[Callable[[bool], Any], Callable[[Any], str]]] = {
    "private": (run_private, private_markdown),
    "unit": (run_unit, unit_markdown),
    "compile": (run_compile, compile_markdown),
    "linear": (run_linear, linear_markdown),
    "losses": (run_losses, losses_markdown),
    "memory": (run_memory, memory_markdown),
    "growth": (run_growth, growth_markdown),
}


def report(results: dict[str, Any]) -> str:
    """Return the whole report."""
    quick = " (quick run)" if results["quick"] else ""
    parts = [f"# The learner{quick}", facts_markdown(results["facts"])]
    parts.append(
        "Timings come from a shared machine: compare within a section, whose figures come from one process, rather"
        f" than between runs. Sections ended at: {', '.join(f'{k} {date}' for k, date in results['runs'].items())}."
    )
    goals = targets(results)
    if goals:
        missed = [f"{row[0]} ({row[1]}; {row[2]})" for row in goals if row[3].startswith("MISSED")]
        words = "All met." if not missed else "Missed: " + "; ".join(missed) + "."
        parts.append("## Targets\n\n" + table(["case", "target", "measured", ""], goals, text=4) + "\n\n" + words)
    parts += [markdown(results[name]) for name, (_, markdown) in SECTIONS.items() if name in results]
    return "\n\n".join(parts)


def main() -> None:
    """Run the sections and write the report after each."""
    parser = section_parser(__doc__, __file__, SECTIONS, "short runs, two minutes")
    parser.add_argument("--memory", nargs=2, metavar=("LOSS", "ROUNDS"), help=argparse.SUPPRESS)
    parser.add_argument("--first", metavar="LOSS", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.memory:
        memory_child(args.memory[0], int(args.memory[1]))
        return
    if args.first:
        first_child(args.first)
        return
    run_sections(args, SECTIONS, ("numpy", "numba", "river", "reticent"), report)


if __name__ == "__main__":
    main()
