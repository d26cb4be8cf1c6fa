"""A file that is damaged, torn, old, new, or not ours."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import orjson
import pytest

from kardinal_local.plane import Authority, DirectoryUnusable, LocalPlane, holder
from tests.local.plane.wire import CONFIG_MAPS, Http, config_map, session_for

OBJECTS = 40


async def _filled(directory: Path, authority: Authority) -> Path:
    """The file of a plane that has stored some objects and has ended."""
    plane = await LocalPlane.start(directory, authority=authority)
    async with session_for(plane.kubeconfig) as session:
        for number in range(OBJECTS):
            await Http(session).post(CONFIG_MAPS, config_map(f"m{number}", key=f"value-{number} " + "x" * 3000))
    await plane.stop()
    return directory / "plane.db"


def _garbage_instead_of_the_header(path: Path) -> None:
    path.write_bytes(b"this is no database" + path.read_bytes()[19:])


def _nothing(path: Path) -> None:
    path.write_bytes(b"")


def _the_first_half(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def _a_page_of_noise(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 8192 * 4096
    content[middle : middle + 4096] = bytes(range(256)) * 16
    path.write_bytes(content)


def _one_letter_changed(path: Path) -> None:
    content = path.read_bytes()
    assert content.count(b"value-7 ") == 1
    path.write_bytes(content.replace(b"value-7 ", b"value-8 "))


def _a_row_of_another_object(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("UPDATE objects SET name = 'other' WHERE name = 'm7'")


def _no_revision(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("DELETE FROM meta")


def _the_database_of_another_program(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE songs (title TEXT)")


DAMAGES = [
    _garbage_instead_of_the_header,
    _nothing,
    _the_first_half,
    _a_page_of_noise,
    _one_letter_changed,
    _a_row_of_another_object,
    _no_revision,
    _the_database_of_another_program,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
async def test_a_damaged_file_is_refused_and_left_as_it_is(
    tmp_path: Path, authority: Authority, damage: Callable[[Path], None]
) -> None:
    path = await _filled(tmp_path, authority)
    damage(path)
    found = path.read_bytes()
    with pytest.raises(DirectoryUnusable) as refusal:
        await LocalPlane.start(tmp_path, authority=authority)
    assert str(refusal.value).startswith(f"{path} cannot be read (")
    assert "put a good copy in its place" in str(refusal.value)
    assert path.read_bytes() == found
    assert holder(tmp_path) is None


async def test_a_file_that_was_moved_away_without_its_log_is_missed(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "plane.db-wal").write_bytes(b"the last writes")
    with pytest.raises(DirectoryUnusable, match="it is missing, and yet its log"):
        await LocalPlane.start(tmp_path, authority=authority)
    assert not (tmp_path / "plane.db").exists()


async def test_a_creation_that_was_cut_short_is_begun_anew(tmp_path: Path, authority: Authority) -> None:
    (tmp_path / "plane.db.new").write_bytes(b"half a fi")
    plane = await LocalPlane.start(tmp_path, authority=authority)
    assert ("", "default") in plane.objects("namespaces")
    await plane.stop()


async def test_a_file_that_another_program_has_open_is_refused(tmp_path: Path, authority: Authority) -> None:
    path = await _filled(tmp_path, authority)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(DirectoryUnusable, match=r"plane\.db is open in another program"):
            await LocalPlane.start(tmp_path, authority=authority)


@pytest.mark.parametrize("torn", [-100, 100], ids=["cut off", "with a tail of nonsense"])
async def test_a_torn_log_is_taken_up_to_its_last_whole_commit(tmp_path: Path, authority: Authority, torn: int) -> None:
    plane = await LocalPlane.start(tmp_path / "running", authority=authority)
    async with session_for(plane.kubeconfig) as session:
        written = [await Http(session).post(CONFIG_MAPS, config_map(f"m{number}")) for number in range(OBJECTS)]
    crashed = tmp_path / "crashed"
    shutil.copytree(tmp_path / "running", crashed)
    await plane.stop()
    log = (crashed / "plane.db-wal").read_bytes()
    assert log
    (crashed / "plane.db-wal").write_bytes(log[:torn] if torn < 0 else log + b"?" * torn)

    plane = await LocalPlane.start(crashed, authority=authority)
    lost = 1 if torn < 0 else 0
    async with session_for(plane.kubeconfig) as session:
        found = await Http(session).get(CONFIG_MAPS)
        again = await Http(session).post(CONFIG_MAPS, config_map("again"))
    await plane.stop()
    assert len(found.body["items"]) == OBJECTS - lost
    assert found.revision == written[-1 - lost].revision
    assert again.status == 201


async def test_a_file_of_a_newer_version_is_refused(tmp_path: Path, authority: Authority) -> None:
    path = await _filled(tmp_path, authority)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")
    with pytest.raises(DirectoryUnusable, match=r"plane\.db was written by a newer kardinal \(format 99, "):
        await LocalPlane.start(tmp_path, authority=authority)


FIRST_FORMAT = """
PRAGMA journal_mode=WAL;
CREATE TABLE objects (
    resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL, revision INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (resource, namespace, name)
) WITHOUT ROWID;
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('revision', 70);
PRAGMA user_version = 1;
"""


def _of_the_first_format(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(FIRST_FORMAT)
        for revision, name in enumerate(["a", "b"], start=60):
            metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": str(revision)}
            body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"key": name}}
            row = ("configmaps", "default", name, revision, orjson.dumps(body))
            database.execute("INSERT INTO objects VALUES (?, ?, ?, ?, ?)", row)


async def test_a_file_of_the_first_format_is_brought_up_to_date(tmp_path: Path, authority: Authority) -> None:
    _of_the_first_format(tmp_path / "plane.db")
    for _ in range(2):
        plane = await LocalPlane.start(tmp_path, authority=authority)
        async with session_for(plane.kubeconfig) as session:
            found = await Http(session).get(CONFIG_MAPS)
        await plane.stop()
        contents = {item["metadata"]["name"]: item["data"]["key"] for item in found.body["items"]}
        assert contents == {"a": "a", "b": "b"}
        assert int(found.revision) >= 70
    with closing(sqlite3.connect(tmp_path / "plane.db")) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (2,)


async def test_a_migration_that_fails_leaves_the_old_file(tmp_path: Path, authority: Authority) -> None:
    path = tmp_path / "plane.db"
    _of_the_first_format(path)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE objects_1 (in_the_way TEXT)")
    with pytest.raises(DirectoryUnusable, match=r"plane\.db cannot be read"):
        await LocalPlane.start(tmp_path, authority=authority)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (1,)
        assert database.execute("SELECT count(*) FROM objects").fetchone() == (2,)
