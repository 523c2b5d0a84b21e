#!/usr/bin/env python3
"""A Spark job that checks every SQLite store below a folder, or of a listing, and writes a partitioned Parquet table of verdicts.

    spark-submit --py-files tools/spark/fleet.py tools/spark/check_fleet.py STORES VERDICTS

STORES is a folder that every worker sees, or a file (with --listing) with one path or JSON object a line. VERDICTS is a folder; a
second run goes on where the first stopped: stores that have a verdict and have not changed since are not read again.
The program `rootpage` has to be on every worker (--program PATH; --files ships a static binary).
"""

import argparse
import sys

import fleet
from pyspark.sql import SparkSession


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stores")
    parser.add_argument("verdicts")
    parser.add_argument("--listing", action="store_true", help="STORES is a file that lists them")
    parser.add_argument("--pattern", default="*", help="names of files to look at, as *.db")
    parser.add_argument("--program", default="rootpage")
    parser.add_argument("--parts", type=int, default=16, help="partitions of the table")
    parser.add_argument("--batch", type=int, default=2000, help="stores between two commits of the table")
    parser.add_argument("--seconds", type=int, default=600, help="longest run for one store")
    parser.add_argument("--memory", default="256M", help="memory of one run")
    parser.add_argument("--all-files", action="store_true", help="also read files that do not look like stores")
    return parser.parse_args()


def main():
    given = arguments()
    spark = SparkSession.builder.appName("rootpage-fleet").getOrCreate()
    schema = ", ".join(f"{name} {kind}" for name, kind in fleet.COLUMNS)
    if given.listing:
        with open(given.stores, encoding="utf-8") as file:
            found = list(fleet.listed(file.read()))
    else:
        found = list(fleet.stores(given.stores, given.pattern))
    try:
        # Read once and kept: the table grows under it.
        earlier = spark.read.schema(schema).parquet(given.verdicts).select("path", "bytes", "modified", "status")
        done = [r.asDict() for r in earlier.collect()]
    except Exception:  # there is no table yet: the reader's error has no class of its own
        done = []
    todo = fleet.left_over(found, done)
    print(f"{len(found)} stores, {len(found) - len(todo)} of them have a verdict already", file=sys.stderr)
    # Large ones first: the last task should not be the longest.
    todo.sort(key=lambda s: -s["bytes"])
    for at in range(0, len(todo), given.batch):
        batch = todo[at : at + given.batch]
        parts, program, seconds, memory, only = given.parts, given.program, given.seconds, given.memory, not given.all_files

        def verdict(store):
            made = fleet.check(store, parts, program, seconds, memory, only_stores=only)
            return tuple(made[name] for name, _ in fleet.COLUMNS)

        tasks = max(1, min(len(batch), 4 * spark.sparkContext.defaultParallelism))
        # A task a few stores: one that is lost with its worker is tried again alone.
        rows = spark.sparkContext.parallelize(batch, tasks).map(verdict)
        spark.createDataFrame(rows, schema).repartition("part").write.mode("append").partitionBy("part").parquet(given.verdicts)
    table = spark.read.schema(schema).parquet(given.verdicts)
    table.groupBy("status").count().orderBy("status").show(truncate=False)
    spark.stop()


if __name__ == "__main__":
    main()
