"""The wheel against SQLite: rows of healthy files are the same, damaged ones are read, nothing is written beside the evidence."""

import os
import pathlib
import sqlite3

import pytest
import rootpage

CORPUS = pathlib.Path(__file__).resolve().parents[3] / "corpus"


@pytest.fixture
def made(tmp_path):
    path = tmp_path / "made.db"
    con = sqlite3.connect(path)
    con.executescript(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, a, b TEXT); CREATE TABLE w(k TEXT PRIMARY KEY, v) WITHOUT ROWID;"
    )
    values = [None, 0, -(2**63), 2**63 - 1, 0.5, float("inf"), "", "größe 日本 \x00", b"", b"\x00\xff"]
    con.executemany("INSERT INTO t(a, b) VALUES(?, ?)", [(v, str(v)) for v in values])
    con.execute("INSERT INTO t(a) VALUES(CAST(x'ff41' AS TEXT))")
    con.executemany("INSERT INTO w VALUES(?, ?)", [(f"k{i}", i) for i in range(2000)])
    con.commit()
    con.close()
    return path


def test_rows_are_those_of_sqlite(made):
    con = sqlite3.connect(made)
    con.text_factory = bytes
    there = list(con.execute("SELECT id, a, typeof(a), b FROM t ORDER BY id"))
    here = list(rootpage.rows(made, "t"))
    assert len(here) == len(there) == 11
    for row, (rowid, a, kind, b) in zip(here, there):
        assert (row.table, row.rowid, row["id"]) == ("t", rowid, rowid)
        if kind == b"text":
            text = row["a"]
            assert (text if isinstance(text, rootpage.IllFormedText) else text.encode()) == a
        else:
            assert row["a"] == a and type(row["a"]) is type(a)
        assert row["b"] == (None if b is None else b.decode())
    assert isinstance(here[-1]["a"], rootpage.IllFormedText)
    assert [r["v"] for r in rootpage.rows(made, "w")] == [v for (v,) in con.execute("SELECT v FROM w ORDER BY k")]
    assert {r.table for r in rootpage.rows(made)} == {"t", "w"}


def test_a_damaged_file_is_checked_and_recovered(tmp_path):
    source = CORPUS / "leaf-zero" / "db.sqlite"
    before = source.read_bytes(), sorted(os.listdir(source.parent))
    report = rootpage.check(source)
    assert report["exit_code"] == 2 and "orders" in report["verdict"]["sentence"]
    out = tmp_path / "copy.db"
    done = rootpage.recover(source, out)
    written = {t["name"]: t["rows_written"] for t in done["recovery"]["tables"]}
    con = sqlite3.connect(out)
    assert con.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert written["orders"] == con.execute("SELECT count(*) FROM orders").fetchone()[0]
    ids = [r.rowid for r in rootpage.rows(source, "orders")]
    assert ids == [i for (i,) in con.execute("SELECT rowid FROM orders ORDER BY rowid")]
    with pytest.raises(FileExistsError):
        rootpage.recover(source, out)
    assert (source.read_bytes(), sorted(os.listdir(source.parent))) == before


def test_an_iterator_may_be_left_early(made):
    rows = rootpage.rows(made, "w")
    assert next(rows)["k"] == "k0"
    del rows


def test_errors_have_their_classes(tmp_path, made):
    with pytest.raises(rootpage.Error, match="missing.db"):
        rootpage.check(tmp_path / "missing.db")
    text = tmp_path / "text"
    text.write_text("no database\n" * 100)
    with pytest.raises(rootpage.NotADatabase):
        rootpage.check(text)
    with pytest.raises(ValueError, match="no table"):
        list(rootpage.rows(made, "nosuch"))
    with pytest.raises(ValueError, match="no option"):
        rootpage.check(made, colour=True)
    with pytest.raises(ValueError, match="commit:N"):
        rootpage.check(made, at="yesterday")


def test_redaction_reaches_python(made):
    row = next(rootpage.rows(made, "w", redact=True))
    assert row["k"] == "text of 2 characters" and row.rowid is None
