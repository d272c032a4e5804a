"""Benchmark of all systems on the same streams: certificates, regret, switches and time.

python bench/systems.py [--quick] [--out bench/results/systems.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # beside another busy process two threads of OpenBLAS can be 40 times slower

# Other processes find the modules beside this script through the environment.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.path.dirname(__file__), os.environ.get("PYTHONPATH")]))

import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np

import reticent as rt
from _report import facts_markdown, run_sections, say, section_parser, table
from _streams import Stream
from reticent.hindsight._comparator import best_fixed
from reticent.losses._gate import Gate
from reticent.planning import Comparison

Cell = dict[str, Any]

DELTA = 1e-6
BLOCK = 50_000  # rounds handed over at a time
PATIENCE = 90.0  # seconds that one run may take; a system that took longer is not run again in that cell
SEEDS = {10**4: 5, 10**5: 3, 10**6: 2}
LOSSES = {"linear": rt.Linear(), "logistic": rt.Logistic(), "squared": rt.Squared()}
BALLS = ("linear", "logistic")
# What is known of (x - y)^2 / 2 for x and y in [0, 1], whatever the rounds are.
CURVED = {"strong_convexity": 1.0, "smoothness": 1.0}


# Streams: fixed in advance by their seeds, rows of length at most 1


def blocks(loss: str, T: int, d: int, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield the rounds of a stream in blocks.

    "linear": a noisy gradient whose mean turns to a new direction thirty times, every other time against the sum so
    far. "logistic": features on the sphere, labels from a logistic model. "squared": numbers in [0, 1] whose mean
    jumps in each tenth.
    """
    rng = np.random.default_rng([seed, T, d])
    model = Stream("logistic", "sphere", d, seed=seed)
    turns = np.concatenate([[0], np.sort(rng.choice(np.arange(1, T), 30, replace=False)), [T]])
    mean, total, k = np.zeros(d), np.zeros(d), 0
    for first in range(0, T, BLOCK):
        count = min(BLOCK, T - first)
        if loss == "logistic":
            yield model.rounds(count, rng)
            continue
        if loss == "squared":
            means = np.random.default_rng([seed, T]).uniform(0.2, 0.8, 10)[(first + np.arange(count)) * 10 // T]
            yield np.ones((count, 1)), np.clip(means + 0.2 * rng.standard_normal(count), 0.0, 1.0)
            continue
        rows = rng.standard_normal((count, d)) * (0.5 / np.sqrt(d))
        place = first
        while place < first + count:
            if place == turns[k]:
                mean = -total if k % 2 and total.any() else rng.standard_normal(d)
                mean = 0.5 * mean / np.linalg.norm(mean)
                k += 1
            stop = min(turns[k], first + count)
            rows[place - first : stop - first] += mean
            total = total + (stop - place) * mean
            place = stop
        yield (rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None],)


def expert_blocks(T: int, n: int, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Yield losses of experts in [0, 1]: independent coins, one expert a little better, another one in each tenth."""
    rng = np.random.default_rng([seed, T, n])
    for first in range(0, T, BLOCK):
        count = min(BLOCK, T - first)
        chance = np.full((count, n), 0.5)
        chance[np.arange(count), ((first + np.arange(count)) * 10 // T) % n] -= 0.2
        chance[:, 0] -= 0.05
        yield ((rng.random((count, n)) < chance).astype(float),)


def least(loss: str, T: int, d: int, seed: int, known: dict[Any, float]) -> float:
    """Return the loss of the best fixed decision of a stream, each found once."""
    key = loss, T, d, seed
    if key not in known:
        known[key] = _least(*key)
    return known[key]


def _least(loss: str, T: int, d: int, seed: int) -> float:
    domain = body(loss, d)
    kind = LOSSES.get(loss, rt.Linear())
    gate = Gate(domain, kind, None)
    made = [part for block in stream(loss, T, d, seed) for part in gate.prepare(*block)]
    return best_fixed(domain, kind, made, 1.0).value


def body(loss: str, d: int) -> Any:
    """Return where the decisions of a stream live."""
    if loss == "squared":
        return rt.Interval(0.0, 1.0)
    return rt.Experts(d) if loss == "experts" else rt.Ball(d)


def stream(loss: str, T: int, d: int, seed: int) -> Iterator[tuple[np.ndarray, ...]]:
    return expert_blocks(T, d, seed) if loss == "experts" else blocks(loss, T, d, seed)


# Runs


def run(plan: Any, loss: str, T: int, d: int, seed: int, known: dict[Any, float]) -> Cell | None:
    """Return regret, switches and seconds of one run; None if it was given up."""
    learner = rt.make(plan, LOSSES.get(loss, rt.Linear()), seed=1000 + seed)
    total, seconds = 0.0, 0.0
    for block in stream(loss, T, d, seed):
        start = time.perf_counter()
        try:
            trace = learner.observe_many(*block)
        except rt.WorkLimitError:
            return None
        seconds += time.perf_counter() - start
        total += trace.total
        if seconds > PATIENCE:
            return None
    return {"regret": total - least(loss, T, d, seed, known), "switches": learner.switches, "seconds": seconds}


def measured(found: Comparison, loss: str, T: int, d: int, slow: set[str], known: dict[Any, float]) -> list[Cell]:
    """Run every system that has a plan, on the same streams."""
    seeds = SEEDS[T]
    rows = []
    for offer in found:
        assert offer.plan is not None
        row: Cell = {
            "system": offer.system,
            "certificate": offer.regret_bound,
            "expected switches": offer.plan.expected_switches,
        }
        runs = []
        for seed in range(seeds):
            one = None if offer.system in slow else run(offer.plan, loss, T, d, seed, known)
            if one is None:
                slow.add(offer.system)
                break
            runs.append(one)
        if len(runs) == seeds:
            regrets = [one["regret"] for one in runs]
            row |= {
                "regret": float(np.mean(regrets)),
                "spread": float(np.std(regrets, ddof=1)) if seeds > 1 else None,
                "switches": float(np.mean([one["switches"] for one in runs])),
                "seconds": float(np.mean([one["seconds"] for one in runs])),
            }
        rows.append(row)
    return rows


def goals(quick: bool, sizes: tuple[int, ...] = (1, 10, 50)) -> list[tuple[int, int]]:
    return [(T, d) for T in (10**4, 10**5, 10**6) for d in sizes if not quick or (T <= 10**4 and d <= 10)]


def in_parallel(job: Callable[..., list[Cell]], tasks: list[tuple[Any, ...]]) -> list[Cell]:
    """Run the cells of a table on all cores, the longest first; keep their order."""
    order = sorted(range(len(tasks)), key=lambda i: -tasks[i][1])
    done = joblib.Parallel(n_jobs=-1)(joblib.delayed(_told)(job, tasks[i]) for i in order)
    found: dict[int, list[Cell]] = dict(zip(order, done, strict=True))
    return [row for i in range(len(tasks)) for row in found[i]]


def _told(job: Callable[..., list[Cell]], task: tuple[Any, ...]) -> list[Cell]:
    warnings.simplefilter("ignore")
    start = time.perf_counter()
    rows = job(*task)
    say(f"{job.__name__} {task}: {time.perf_counter() - start:.0f} s")
    return rows


def foremost(found: Comparison) -> rt.planning.BasePlan:
    """Return the first plan of a comparison whose decisions stay in the domain, and that may run."""
    stay = [one for one in found if one.plan is not None and one.plan.domain == found.goal.domain]
    plan = next(one.plan for one in stay if found.affordable(one))
    assert plan is not None
    return plan


def private_cells(loss: str, T: int, d: int) -> list[Cell]:
    rows = []
    slow: set[str] = set()
    known: dict[Any, float] = {}
    for epsilon in (0.3, 1.0, 3.0):
        goal = (body(loss, d), T, 1.0, LOSSES[loss])
        found = rt.compare_plans(*goal, epsilon=epsilon, delta=DELTA)
        assert foremost(found) == rt.best_plan(*goal, epsilon=epsilon, delta=DELTA)
        for row in measured(found, loss, T, d, slow, known):
            rows.append({"loss": loss, "T": T, "d": d, "epsilon": epsilon} | row)
    return rows


def lazy_cells(loss: str, T: int, d: int) -> list[Cell]:
    rows = []
    slow: set[str] = set()
    known: dict[Any, float] = {}
    for S in (T // 1000, T // 100, T // 10):
        goal, known_of = (body(loss, d), T, 1.0, LOSSES[loss]), CURVED if loss == "squared" else {}
        found = rt.compare_plans(*goal, max_switches=S, **known_of)
        assert foremost(found) == rt.best_plan(*goal, max_switches=S, **known_of)
        for row in measured(found, loss, T, d, slow, known):
            rows.append({"loss": loss, "T": T, "d": d, "S": S} | row)
    return rows


def expert_cells(kind: str, T: int, n: int) -> list[Cell]:
    rows = []
    known: dict[Any, float] = {}
    wanted: list[dict[str, Any]] = [{}]
    if kind == "private":
        wanted = [{"epsilon": epsilon, "delta": DELTA} for epsilon in (0.3, 1.0, 3.0)]
    elif kind == "lazy":
        wanted = [{"max_switches": S} for S in (T // 1000, T // 100, T // 10)]
    for goal in wanted:
        found = rt.compare_plans(rt.Experts(n), T, 1.0, rt.Linear(), **goal)
        about = {"kind": kind, "T": T, "n": n, "goal": goal.get("epsilon", goal.get("max_switches"))}
        rows += [about | row for row in measured(found, "experts", T, n, set(), known)]
    return rows


def private(quick: bool) -> list[Cell]:
    return in_parallel(private_cells, [(loss, T, d) for loss in BALLS for T, d in goals(quick)])


def lazy(quick: bool) -> list[Cell]:
    balls = [(loss, T, d) for loss in BALLS for T, d in goals(quick)]
    return in_parallel(lazy_cells, balls + [("squared", T, d) for T, d in goals(quick, (1,))])


def experts(quick: bool) -> list[Cell]:
    return in_parallel(
        expert_cells, [(kind, T, n) for kind in ("private", "lazy", "any") for T, n in goals(quick, (10, 100))]
    )


def again(quick: bool) -> list[Cell]:
    """Run every row of the report whose mean over a few seeds was above its certificate again, with many seeds."""
    known = json.loads((Path(__file__).parent / "results" / "systems.json").read_text())
    rows = [row for name in KEYS for row in known.get(name, []) if row.get("regret", 0.0) > row["certificate"]]
    tasks = [(row, 5 if quick else 20) for row in rows]
    return list(joblib.Parallel(n_jobs=-1)(joblib.delayed(_again)(*task) for task in tasks))


def _again(row: Cell, seeds: int) -> Cell:
    warnings.simplefilter("ignore")
    loss, T, d = row.get("loss", "experts"), row["T"], row.get("d", row.get("n"))
    goal: dict[str, Any] = {}
    if "epsilon" in row or row.get("kind") == "private":
        goal = {"epsilon": row.get("epsilon", row.get("goal")), "delta": DELTA}
    elif row.get("kind") != "any":
        goal = {"max_switches": row.get("S", row.get("goal"))}
    known: dict[str, Any] = CURVED if loss == "squared" else {}
    plan = rt.compare_plans(body(loss, d), T, 1.0, LOSSES.get(loss, rt.Linear()), **goal, **known)[row["system"]].plan
    least_loss = _least(loss, T, d, 0)
    regrets = []
    for seed in range(seeds):
        learner = rt.make(plan, LOSSES.get(loss, rt.Linear()), seed=seed)
        regrets.append(sum(learner.observe_many(*block).total for block in stream(loss, T, d, 0)) - least_loss)
    wanted = ", ".join(f"{name} {value:g}" for name, value in goal.items() if name != "delta")
    say(f"again: {row['system']}, {loss}, T {T:,}, d {d}, {wanted}")
    return {
        "system": row["system"],
        "setting": f"{loss}, T {T:,}, {'n' if loss == 'experts' else 'd'} {d}, {wanted}",
        "certificate": row["certificate"],
        "regret": float(np.mean(regrets)),
        "error": float(np.std(regrets, ddof=1) / np.sqrt(seeds)),
        "T": T,
    }


def speed(quick: bool) -> list[Cell]:
    """Measure the time per round in blocks at d = 10, all in one process."""
    T, d = 10**4 if quick else 10**5, 10
    rows = []
    known: dict[Any, float] = {}
    for loss in (*BALLS, "experts"):
        domain = body(loss, d)
        for goal in ({"epsilon": 1.0, "delta": DELTA}, {"max_switches": T // 100}, {}):
            found = rt.compare_plans(domain, T, 1.0, LOSSES.get(loss, rt.Linear()), **goal)
            for offer in found:
                run(offer.plan, loss, T, d, 0, known)  # compiles
                one = run(offer.plan, loss, T, d, 1, known)
                wait = None if one is None else 1e6 * one["seconds"] / T
                say(f"speed: {loss}, {offer.system}: {wait}")
                rows.append(
                    {"loss": loss, "goal": next(iter(goal), "none"), "system": offer.system, "microseconds": wait}
                )
    return rows


# The report

KEYS = {
    "private": ("loss", "T", "d", "epsilon"),
    "lazy": ("loss", "T", "d", "S"),
    "experts": ("kind", "T", "n", "goal"),
}

ABOUT = """
# All systems on the same streams

Unit ball (experts: losses in [0, 1]; squared: the interval [0, 1]), G = 1, delta = 1e-6, replaced rounds, privacy
against adaptive losses. Figures are per round but for switches and seconds (of a whole run in blocks, first compilation
apart from the shortest runs). "certificate" is what a plan promises, "regret" the mean over seeds with its standard
deviation; bold marks the best of each group. A dash: not run, because one run took more than 90 seconds or a draw was
given up (`WorkLimitError`). `best_plan` returns the first row of a group, which the script asserts, but for rows that
take more than 1e13 operations, and for DP-FTRL for smooth losses, whose decisions leave the ball.
""".strip()


SPEED = """
Microseconds per round in blocks, d = 10 (10 experts), T = 1e5, compiled, all in one process; "ratio" is to plain
gradient descent on the same loss, for experts to multiplicative weights.
""".strip()

AGAIN = """
Certificates are for the expectation; means over two to five seeds of a run whose noise is drawn once, or rarely, spread
widely. Rows above whose mean exceeded the certificate, run again on one stream with 20 seeds:
""".strip()


def grouped(rows: list[Cell], by: tuple[str, ...]) -> str:
    """Return a table with the best certificate and the best regret of each group in bold."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    lines = []
    for key, members in groups.items():
        best = min(member["certificate"] for member in members)
        regrets = [member["regret"] for member in members if "regret" in member]
        for i, member in enumerate(members):
            T = member["T"]
            shown = [*key] if i == 0 else [""] * len(key)
            shown += [member["system"], _bold(member["certificate"] / T, member["certificate"] == best)]
            if "regret" in member:
                spread = "" if member["spread"] is None else f" ± {member['spread'] / T:.2g}"
                mean = _bold(member["regret"] / T, member["regret"] == min(regrets))
                shown += [mean + spread, f"{member['switches']:,.0f}", f"{member['seconds']:.2f}"]
            else:
                shown += ["-", "-", "-"]
            lines.append([str(cell) for cell in shown])
    return table([*by, "system", "certificate", "regret", "switches", "seconds"], lines, text=len(by) + 1)


def winners(rows: list[Cell], by: tuple[str, ...]) -> str:
    """Return how often each system has the lowest certificate, and the lowest mean regret, for each kind of stream."""
    counts: dict[tuple[Any, str], list[int]] = {}
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in by), []).append(row)
    for key, members in groups.items():
        ran = [member for member in members if "regret" in member]
        for place, best in enumerate(
            (min(members, key=lambda m: m["certificate"]), min(ran, key=lambda m: m["regret"]) if ran else None)
        ):
            if best is not None:
                counts.setdefault((key[0], best["system"]), [0, 0])[place] += 1
    lines = [
        [kind, system, *found]
        for (kind, system), found in sorted(counts.items(), key=lambda item: (item[0][0], [-n for n in item[1]]))
    ]
    heads = [by[0], "system", "lowest certificate", "lowest regret"]
    above = [row for row in rows if row.get("regret", 0.0) > row["certificate"]]
    most = max((excess(row) for row in above), default=0.0)
    note = (
        f"Groups: {len(groups)}. Means of a few seeds above the certificate, which is for the expectation: {len(above)}"
    )
    return table(heads, lines, text=2) + f"\n\n{note}, by at most {most:.1f} standard errors."


def excess(row: Cell) -> float:
    """Return by how many standard errors a mean regret is above the certificate."""
    error = row["spread"] / np.sqrt(SEEDS[row["T"]])
    return float((row["regret"] - row["certificate"]) / error)


def _bold(value: float, best: bool) -> str:
    text = f"{value:.4g}"
    return f"**{text}**" if best else text


def report(results: Cell) -> str:
    parts = [ABOUT, facts_markdown(results["facts"])]
    for name, by in KEYS.items():
        if name in results:
            parts += [f"## {name.capitalize()}", winners(results[name], by), grouped(results[name], by)]
    if "again" in results:
        parts += ["## Above the certificate?", AGAIN]
        lines = [
            (
                row["system"],
                row["setting"],
                *(f"{row[name] / row['T']:.4g}" for name in ("certificate", "regret", "error")),
            )
            for row in results["again"]
        ]
        parts.append(table(["system", "setting", "certificate", "regret", "standard error"], lines, text=2))
    if "speed" in results:
        plain = {
            row["loss"]: row["microseconds"]
            for row in results["speed"]
            if row["goal"] == "none" and row["system"] in ("online gradient descent", "multiplicative weights (Hedge)")
        }
        rows = []
        for row in results["speed"]:
            wait = row["microseconds"]
            ratio = None if wait is None else wait / plain[row["loss"]]
            rows.append((row["loss"], row["goal"], row["system"], wait, ratio))
        parts += ["## Time per round", SPEED]
        parts.append(table(["loss", "goal", "system", "microseconds", "ratio"], rows, text=3))
    return "\n\n".join(parts)


SECTIONS: dict[str, tuple[Callable[[bool], Any], Any]] = {
    "private": (private, None),
    "lazy": (lazy, None),
    "experts": (experts, None),
    "again": (again, None),
    "speed": (speed, None),
}


def main() -> None:
    args = section_parser(__doc__ or "", __file__, SECTIONS, "T = 1e4 and d up to 10 only").parse_args()
    run_sections(args, SECTIONS, ("numpy", "numba", "scipy"), report)


if __name__ == "__main__":
    main()
