"""Offline forensic recovery for SQLite databases: rows and reports of damaged files, read without SQLite."""

import json
import os

from . import _rootpage
from ._rootpage import Error, NotADatabase, Unstable, __version__

__all__ = ["check", "recover", "rows", "Row", "IllFormedText", "Error", "NotADatabase", "Unstable", "__version__"]


class IllFormedText(bytes):
    """A text value that is not well-formed in the encoding of the database, as its bytes are stored."""


class Row(dict):
    """A row: values by column name, the table's name, and the rowid (None in a WITHOUT ROWID table)."""

    __slots__ = ("table", "rowid")


def _evidence(options):
    wal = options.pop("wal", None)
    if wal is not None:
        paths = [wal] if isinstance(wal, (str, bytes, os.PathLike)) else list(wal)
        options["wal"] = [os.fsdecode(p) for p in paths]
    for name in ("journal", "schema"):
        if options.get(name) is not None:
            options[name] = os.fsdecode(options[name])
    return options


def check(path, **options):
    """What is damaged, and what that means for the data: the report as a dict."""
    return json.loads(_rootpage.check(os.fsdecode(path), **_evidence(options)))


def recover(path, out, **options):
    """Writes a clean copy to `out`, and beside it the reports and the salvage database; returns the report as a dict."""
    return json.loads(_rootpage.recover(os.fsdecode(path), os.fsdecode(out), **_evidence(options)))


def rows(path, table=None, **options):
    """The rows of one table, or of all, straight from the evidence: an iterator of `Row`."""
    reader = _rootpage.Reader(os.fsdecode(path), table, **_evidence(options))

    def read():
        while True:
            got = reader.read()
            if got is None:
                return
            name, columns, rowid, values = got
            row = Row(zip(columns, (IllFormedText(v[0]) if isinstance(v, tuple) else v for v in values)))
            row.table, row.rowid = name, rowid
            yield row

    return read()
