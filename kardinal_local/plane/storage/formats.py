"""Migrate the file from its earlier formats.

A file says its format in `user_version`. An older one is brought up step by step, all steps in one transaction: it is
of the old format or of the new one, whenever the power fails. A newer one is not touched (see `database`).
"""

from __future__ import annotations

import sqlite3
import zlib

__all__ = ["CREATION", "FIRST_REVISION", "FORMAT", "migrate"]

FORMAT = 2

_OBJECTS = """
CREATE TABLE objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL,
    checksum INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
"""

FIRST_REVISION = 1
CREATION = f"""
{_OBJECTS}
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', {FIRST_REVISION});
PRAGMA user_version = {FORMAT};
"""  # noqa: S608

_STEPS = {
    # Rows had no checksum.
    1: f"""
    ALTER TABLE objects RENAME TO objects_1;
    {_OBJECTS}
    INSERT INTO objects SELECT resource, namespace, name, revision, crc32(body), body FROM objects_1;
    DROP TABLE objects_1;
    """,  # noqa: S608
}


def migrate(connection: sqlite3.Connection) -> None:
    """Bring an open file up to the format of today."""
    (found,) = connection.execute("PRAGMA user_version").fetchone()
    if found == FORMAT:
        return
    connection.create_function("crc32", 1, zlib.crc32, deterministic=True)
    steps = "".join(_STEPS[number] for number in range(found, FORMAT))
    try:
        connection.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {FORMAT}; COMMIT;")
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
