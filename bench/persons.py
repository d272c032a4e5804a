"""What persons cost: time beside learners of single rounds, memory for each person, and what is learned.

python bench/persons.py [--quick] [--out bench/results/persons.md] [--only SECTION ...]
"""

# ruff: noqa: E402 (numpy reads the number of its threads when it is imported)
from __future__ import annotations

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")

import time
import tracemalloc
from dataclasses import replace
from typing import Any

import numpy as np
import pandas

import reticent as rt
from _report import facts_markdown, figure, run_sections, section_parser, table
from reticent.planning import plan_noisy_descent
from reticent.systems._persons import Roll
from reticent.systems._saved import pack_learner

DIM, GOAL = 10, {"epsilon": 1.0, "delta": 1e-6}
REPEATS = 3


def stream(rounds: int, people: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return rows of length 1, labels of a logistic model, and whose each is: anybody's, alike."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(rounds, DIM))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    truth = np.linspace(3.0, -3.0, DIM)
    labels = np.where(rng.random(rounds) < 1 / (1 + np.exp(-rows @ truth)), 1.0, -1.0)
    return rows, labels, rng.integers(0, people, size=rounds)


def learner(system: str, **options: Any) -> Any:
    body = rt.Ball(DIM, radius=8.0)
    if system == "filtered gate":
        return rt.private_learner(rt.Logistic(), body, **GOAL, seed=1, **options)
    return rt.make(plan_noisy_descent(body, None, 1.0, **GOAL, **options), rt.Logistic(), seed=1, on_steep="clip")


def cost(quick: bool) -> dict[str, Any]:
    """Take in a million rows of a hundred thousand persons at once, with and without them; the best of three."""
    rounds, people = (20_000, 2_000) if quick else (1_000_000, 100_000)
    X, y, keys = stream(rounds, people)
    names = [f"user-{key}" for key in keys.tolist()]
    kinds: list[tuple[str, Any, dict[str, Any]]] = [
        ("one round", None, {}),
        ("persons, numbers", keys, {"max_rows": 10}),
        ("persons, texts in a list", names, {"max_rows": 10}),
        ("persons, texts in a column of pandas", pandas.Series(names), {"max_rows": 10}),
        ("persons, numbers, windows", keys, {"max_rows": 2, "window": rounds // 10}),
    ]
    rows = []
    for system in ("noisy descent", "filtered gate"):
        plain = learner(system).plan.batch
        for kind, persons, options in kinds:
            times = []
            for _ in range(REPEATS):
                made = learner(system, **options)
                begin = time.process_time()
                made.observe_many(X, y, **({} if persons is None else {"persons": persons}))
                times.append(time.process_time() - begin)
            # Plans for persons have longer blocks, which are cheaper: beside it the same blocks as for single rounds.
            same = min(times)
            if persons is not None:
                again = []
                for _ in range(REPEATS):
                    made = rt.make(replace(made.plan, batch=plain), rt.Logistic(), seed=1, on_steep="clip")
                    begin = time.process_time()
                    made.observe_many(X, y, persons=persons)
                    again.append(time.process_time() - begin)
                same = min(again)
            rows.append({"system": system, "unit": kind, "seconds": min(times), "same": same, "left": made.left_out})
    few = min(rounds, 50_000)
    single = []
    for kind, persons, options in kinds[:2]:
        made = learner("filtered gate", **options)
        begin = time.process_time()
        for i in range(few):
            if persons is None:
                made.observe(X[i], y[i])
            else:
                made.observe(X[i], y[i], person=persons[i])
        single.append({"unit": kind, "micros": (time.process_time() - begin) / few * 1e6})
    return {"rounds": rounds, "people": people, "rows": rows, "single": single}


def memory(quick: bool) -> dict[str, Any]:
    """Return the bytes that a person takes in the roll, and in a saved state."""
    rows = []
    for people in (1_000, 10_000) if quick else (1_000, 100_000, 1_000_000):
        tracemalloc.start()
        roll = Roll(10, b"x" * 32)
        for start in range(0, people, 100_000):
            roll.admit(roll.owners(np.arange(start, min(people, start + 100_000))))
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        made = learner("noisy descent", max_rows=10)
        empty = len(pack_learner(made))
        made._roll = roll
        rows.append({"people": people, "held": held / people, "saved": (len(pack_learner(made)) - empty) / people})
    return {"rows": rows}


def learned(quick: bool) -> dict[str, Any]:
    """Return the mean loss over the second half, for persons with so many rows each of which so many count."""
    rounds, rows = (20_000 if quick else 200_000), []
    for each in (1, 2, 5, 20):
        X, y, keys = stream(rounds, rounds // each)
        for system in ("noisy descent", "filtered gate"):
            for cap in (each, 2 * each):
                made = learner(system, max_rows=cap)
                losses = made.observe_many(X, y, persons=keys).losses[rounds // 2 :]
                row = {"each": each, "cap": cap, "system": system, "loss": float(losses.mean())}
                rows.append(row | {"left": made.left_out / rounds})
        single = learner("filtered gate").observe_many(X, y).losses[rounds // 2 :]
        rows.append({"each": each, "cap": None, "system": "filtered gate", "loss": float(single.mean()), "left": 0.0})
    return {"rounds": rounds, "never": float(np.log(2)), "rows": rows}


HEAD = """# Persons

{facts}

Learners of persons (`max_rows=`) beside learners of single rounds: logistic loss, 10 dimensions, epsilon 1, delta 1e-6.
Made by `bench/persons.py`.
"""
COST = """## Time

{rounds:,} rounds of {people:,} persons in one call of `observe_many`, seconds of the processor, the best of three.
Plans for persons have more noise and longer blocks, which are cheaper; the last columns have the blocks of the plan for
single rounds.
"Times" is against the learner of single rounds of the same system.
"""
MEMORY = """## Memory

Bytes for each person in the roll (a hash and a count in a dictionary), and in a saved state. Windows forget everybody
at their end; without one the roll grows with the number of persons.
"""
LEARNED = """## What is learned

Mean loss over the second half of {rounds:,} rounds, when every person has so many rows on the average and as many, or
twice as many, count; one that never moves has {never:.4f}. Without a cap the unit is one round.
"""


def report(results: dict[str, Any]) -> str:
    """Return the report as Markdown."""
    text = [HEAD.format(facts=facts_markdown(results["facts"]))]
    if found := results.get("cost"):
        base = {r["system"]: r["seconds"] for r in found["rows"] if r["unit"] == "one round"}
        rows = [
            [r["system"], r["unit"], *(figure(x) for x in _times(r, base[r["system"]])), f"{r['left']:,}"]
            for r in found["rows"]
        ]
        heads = ["system", "unit", "seconds", "times", "same blocks", "times", "rows left out"]
        text += [COST.format(**found), table(heads, rows, text=2), "Microseconds for one call of `observe`:"]
        text += [table(["unit", "microseconds"], [[r["unit"], r["micros"]] for r in found["single"]], text=1)]
    if found := results.get("memory"):
        rows = [[f"{r['people']:,}", r["held"], r["saved"]] for r in found["rows"]]
        text += [MEMORY, table(["persons", "bytes each, in memory", "saved"], rows)]
    if found := results.get("learned"):
        rows = [
            [
                str(r["each"]),
                "-" if r["cap"] is None else str(r["cap"]),
                r["system"],
                f"{r['loss']:.4f}",
                f"{r['left']:.1%}",
            ]
            for r in found["rows"]
        ]
        heads = ["rows each", "that count", "system", "mean loss", "left out"]
        text += [LEARNED.format(**found), table(heads, rows, text=3)]
    return "\n\n".join(part.strip() for part in text)


def _times(row: dict[str, Any], base: float) -> list[float]:
    return [row["seconds"], row["seconds"] / base, row["same"], row["same"] / base]


SECTIONS = {"cost": (cost, None), "memory": (memory, None), "learned": (learned, None)}


def main() -> None:
    args = section_parser(__doc__ or "", __file__, SECTIONS, "short streams").parse_args()
    run_sections(args, SECTIONS, ["reticent", "numpy"], report)


if __name__ == "__main__":
    main()
