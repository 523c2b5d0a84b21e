"""What the Spark job does to one store and to the list of stores; needs no Spark and no rootpage package, only the program."""

import fnmatch
import hashlib
import json
import os
import shutil
import subprocess
import tempfile

MAGIC = b"SQLite format 3\0"
SIDECARS = ("-wal", "-journal", "-shm")

#: One row of the table of verdicts: name and type of each column, in Spark's words.
COLUMNS = [
    ("path", "string"), ("bytes", "bigint"), ("modified", "double"), ("part", "int"), ("status", "string"), ("exit_code", "int"),
    ("verdict", "string"), ("sentence", "string"), ("rows", "bigint"), ("findings", "bigint"), ("codes", "array<string>"),
    ("damaged_objects", "array<string>"), ("seconds", "double"), ("error", "string"),
]


def stores(folder, pattern="*"):
    """Every file below a folder that can be a store, with its size and time; sidecars beside their store are none."""
    for where, folders, names in os.walk(folder, onerror=None):
        folders.sort()
        there = set(names)
        for name in sorted(names):
            path = os.path.join(where, name)
            if not fnmatch.fnmatch(name, pattern) or os.path.islink(path):
                continue
            if any(name.endswith(s) and name[: -len(s)] in there for s in SIDECARS):
                continue
            try:
                state = os.stat(path)
            except OSError:
                continue
            yield {"path": path, "bytes": state.st_size, "modified": state.st_mtime}


def listed(text):
    """The stores of a listing of an object store: one JSON object (path, bytes, modified) or one path a line."""
    for line in text.splitlines():
        line = line.strip()
        if not line:
            continue
        entry = json.loads(line) if line.startswith("{") else {"path": line}
        yield {"path": entry["path"], "bytes": int(entry.get("bytes", 0)), "modified": float(entry.get("modified", 0))}


def part_of(path, parts):
    """The partition of a path: the same in every run, so that a run can go on where another stopped."""
    return int.from_bytes(hashlib.sha256(path.encode("utf-8", "surrogatepass")).digest()[:4], "big") % parts


def left_over(found, done):
    """What is still to do: stores that no earlier run has a verdict for, or that are not as they were then."""
    known = {(d["path"], d["bytes"], d["modified"]) for d in done if d["status"] != "lost"}
    return [f for f in found if (f["path"], f["bytes"], f["modified"]) not in known]


def row(store, parts, status, **more):
    """A row of the table; what is not given is null."""
    values = dict.fromkeys((name for name, _ in COLUMNS), None)
    values.update(store, part=part_of(store["path"], parts), status=status, **more)
    return values


def from_report(report):
    """The columns that come from a report of `rootpage check --json`."""
    objects = report.get("objects") or []
    findings = report.get("findings") or []
    return {
        "exit_code": report.get("exit_code"),
        "verdict": report.get("verdict", {}).get("class"),
        "sentence": report.get("verdict", {}).get("sentence"),
        "rows": sum(o.get("rows") or 0 for o in objects if o.get("kind") == "table" and o.get("family") == "table"),
        "findings": sum(f.get("count") or 0 for f in findings),
        "codes": sorted({f["code"] for f in findings if f.get("code")}),
        "damaged_objects": sorted({o["name"] for o in objects if o.get("name") and o.get("status", "whole") != "whole"}),
        "error": report.get("error"),
    }


def is_store(path):
    """Whether a file looks like a store or one that was: the magic, or a size that is a multiple of a page."""
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except OSError:
        return True
    return head == MAGIC or (len(head) == 16 and os.path.getsize(path) % 512 == 0)


def fetch_local(path, _folder):
    """A path of a mounted folder is read where it is."""
    return path


def check(store, parts=1, program="rootpage", seconds=600, memory="256M", fetch=fetch_local, only_stores=True):
    """One row for one store. A store that hangs, crashes the program or cannot be had costs its own row and nothing else."""
    import time

    begun = time.monotonic()
    took = lambda: round(time.monotonic() - begun, 3)  # noqa: E731
    work = tempfile.mkdtemp(prefix="rootpage-fleet-")
    try:
        try:
            path = fetch(store["path"], work)
        except Exception as problem:  # whatever an object store answers
            return row(store, parts, "lost", seconds=took(), error=f"cannot be fetched: {problem}"[:500])
        if only_stores and not is_store(path):
            return row(store, parts, "no-database", seconds=took())
        command = [program, "check", "--json", "--quiet", "--threads", "1", "--memory", memory, "--", path]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return row(store, parts, "timeout", seconds=took(), error=f"over {seconds} s")
        except OSError as problem:
            return row(store, parts, "lost", seconds=took(), error=f"{program}: {problem}"[:500])
        if done.returncode < 0 or done.returncode not in (0, 1, 2, 3, 74, 75):
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            return row(store, parts, "crashed", exit_code=done.returncode, seconds=took(), error=said)
        try:
            report = json.loads(done.stdout)
        except ValueError:
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            return row(store, parts, "unreadable", exit_code=done.returncode, seconds=took(), error=said)
        status = {0: "healthy", 1: "index-only", 2: "damaged", 3: "no-database", 74: "unreadable", 75: "changing"}[done.returncode]
        return row(store, parts, status, seconds=took(), **from_report(report))
    finally:
        shutil.rmtree(work, ignore_errors=True)
