"""A stream of Spark whose query dies twice after a batch was committed: python sparkling.py FOLDER.

Prints how many batches were delivered again, and whether the fleet is that of an undisturbed run.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from fleets import SPECS

import reticent as rt

SHOPS = ["s0", "s1", "s2"]


def main(folder):
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    from pyspark.errors import StreamingQueryException
    from pyspark.sql import SparkSession

    rng, rows = np.random.default_rng(0), []
    (folder / "in").mkdir()
    for number in range(4):
        part = [
            {"shop": SHOPS[i % 3], "minutes": float(rng.exponential(5.0)), "at": 60 * number + i} for i in range(60)
        ]
        (folder / "in" / f"{number}.json").write_text("\n".join(map(json.dumps, part)))
        os.utime(folder / "in" / f"{number}.json", (1e9 + number, 1e9 + number))
        rows += part
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "1")
        .getOrCreate()
    )
    fleet, seen = rt.Fleet(SPECS["mean"], folder / "fleet.db", seed=2), []
    take = rt.fleet.for_each_batch(fleet, "q", key="shop", columns=["minutes"], order="at")

    def dying(batch, number):
        seen.append(number)
        take(batch, number)
        if number in (1, 2) and seen.count(number) == 1:
            raise RuntimeError("killed")

    for _ in range(3):
        stream = spark.readStream.schema("shop string, minutes double, at long").option("maxFilesPerTrigger", 1)
        query = (
            stream.json(str(folder / "in"))
            .writeStream.foreachBatch(dying)
            .option("checkpointLocation", str(folder / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
            break
        except StreamingQueryException:
            continue
    spark.stop()
    other = rt.Fleet(SPECS["mean"], seed=2)
    other.observe([row["shop"] for row in rows], np.array([row["minutes"] for row in rows]))
    same = fleet.decisions(SHOPS).tobytes() == other.decisions(SHOPS).tobytes()
    same &= fleet.rounds(SHOPS).tolist() == [80, 80, 80]
    print("redelivered", len(seen) - len(set(seen)), "same", same)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
