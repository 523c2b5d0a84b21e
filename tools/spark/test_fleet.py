"""The logic of the Spark job, without Spark; the program is a stand-in that answers as rootpage does."""

import json
import os
import pathlib
import stat
import tempfile
import unittest

import fleet


class Fleet(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = pathlib.Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def store(self, name, content=fleet.MAGIC + bytes(496)):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return str(path)

    def program(self, text):
        path = self.root / "program"
        path.write_text("#!/bin/sh\n" + text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)

    def check(self, path, program, **more):
        return fleet.check({"path": path, "bytes": 512, "modified": 1.0}, 4, self.program(program), **more)

    def test_sidecars_and_links_are_no_stores(self):
        for name in ("a.db", "a.db-wal", "a.db-shm", "lone.db-wal", "deep/b.db"):
            self.store(name)
        os.symlink(self.root / "a.db", self.root / "link.db")
        found = [os.path.relpath(s["path"], self.root) for s in fleet.stores(self.root)]
        self.assertEqual(found, ["a.db", "lone.db-wal", "deep/b.db"])
        self.assertEqual([os.path.basename(s["path"]) for s in fleet.stores(self.root, "*.db")], ["a.db", "b.db"])

    def test_a_listing_has_paths_or_objects(self):
        text = 's3://b/x.db\n\n{"path": "s3://b/y.db", "bytes": 7, "modified": 2.5}\n'
        self.assertEqual(
            list(fleet.listed(text)),
            [{"path": "s3://b/x.db", "bytes": 0, "modified": 0.0}, {"path": "s3://b/y.db", "bytes": 7, "modified": 2.5}],
        )

    def test_a_run_goes_on_where_another_stopped(self):
        found = [{"path": p, "bytes": 1, "modified": 1.0} for p in "abcd"]
        done = [dict(found[0], status="healthy"), dict(found[1], status="lost"), dict(found[2], status="damaged", modified=0.5)]
        self.assertEqual([s["path"] for s in fleet.left_over(found, done)], ["b", "c", "d"])
        self.assertEqual({fleet.part_of("x", 16) for _ in range(3)}, {fleet.part_of("x", 16)})
        self.assertEqual({fleet.part_of(str(i), 4) for i in range(100)}, {0, 1, 2, 3})

    def test_a_report_becomes_a_row(self):
        report = {
            "exit_code": 2,
            "verdict": {"class": "structural", "sentence": "Data is damaged in t."},
            "objects": [
                {"kind": "table", "family": "table", "name": "t", "rows": 5, "status": "damaged"},
                {"kind": "table", "family": "table", "name": "u", "rows": 2, "status": "whole"},
                {"kind": "index", "family": "index", "name": "i", "rows": 9, "status": "whole"},
            ],
            "findings": [{"code": "P001", "count": 3}, {"code": "C002", "count": 1}],
        }
        made = self.check(self.store("x.db"), f"cat <<'X'\n{json.dumps(report)}\nX\nexit 2\n")
        self.assertEqual((made["status"], made["exit_code"], made["rows"], made["findings"]), ("damaged", 2, 7, 4))
        self.assertEqual((made["codes"], made["damaged_objects"]), (["C002", "P001"], ["t"]))
        self.assertEqual(set(made), {name for name, _ in fleet.COLUMNS})

    def test_a_bad_store_costs_its_own_row(self):
        path = self.store("x.db")
        self.assertEqual(self.check(path, "kill -SEGV $$\n")["status"], "crashed")
        self.assertEqual(self.check(path, "exit 101\n")["status"], "crashed")
        self.assertEqual(self.check(path, "sleep 60\n", seconds=1)["status"], "timeout")
        self.assertEqual(self.check(path, "echo no json; exit 0\n")["status"], "unreadable")
        self.assertEqual(self.check(self.store("notes.txt", b"a note\n"), "exit 9\n")["status"], "no-database")

        def refuses(_path, _folder):
            raise RuntimeError("403")

        made = self.check(path, "exit 0\n", fetch=refuses)
        self.assertEqual((made["status"], made["error"]), ("lost", "cannot be fetched: 403"))


if __name__ == "__main__":
    unittest.main()
