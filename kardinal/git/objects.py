"""Git objects built in memory, on top of the objects of a repository.

An edit creates a few blobs, the trees above them and a commit. Kept in memory, they have no cost until they are needed:
a plan leaves no trace in the repository, a lost race leaves no garbage, and publishing writes exactly the new objects.
Trees and commits are formatted here, byte by byte as Git defines them, which takes less code than calling libgit2 for
it.

Ids are hexadecimal SHA-1, the only ones libgit2 reads. File names are bytes in Git; they are decoded with
`surrogateescape`, so every name survives the round trip.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import NamedTuple, Protocol

import pygit2
from pygit2.enums import ObjectType

from kardinal.git.errors import DamagedRepository, GitError, ObjectsMissing
from kardinal.git.stored import StoredObjects
from kardinal.tree.commit_message import KARDINAL

__all__ = ["ENTRIES_LIMIT", "TOTAL_ENTRIES_LIMIT", "Signer", "Staging", "TreeEntry", "check_depth"]

_SYMLINK = 0o120000
_DIRECTORY = 0o040000
_FILE = 0o100644
_SUBMODULE = 0o160000
_ID_BYTES = 20

_NEIGHBOURS = 256
"""The most files that are fetched with a missing one, because each fetch costs as much as many small files."""
_PROBABLE = (".yaml", ".yml", ".json", ".tpl", ".env", ".properties", ".toml")
_SMALL = 64 << 10
"""The maximum size in bytes of a directory that is searched for such files."""
_LOOKED_AT = 64
"""The most directories that are searched for such files."""

ENTRIES_LIMIT = 50_000
"""The most entries of a directory that is read; each takes about 300 bytes of memory."""
TOTAL_ENTRIES_LIMIT = 100_000
"""The most entries of all directories that one operation reads."""

DEPTH_LIMIT = 100
"""The maximum depth of nested directories."""


class Signer(Protocol):
    """Sign the content of a commit."""

    def sign(self, content: bytes) -> str: ...


class TreeEntry(NamedTuple):
    """One entry of a tree."""

    mode: int
    id: str

    @classmethod
    def file(cls, blob: str) -> TreeEntry:
        return cls(_FILE, blob)

    @classmethod
    def directory(cls, tree: str) -> TreeEntry:
        return cls(_DIRECTORY, tree)

    @property
    def is_directory(self) -> bool:
        return self.mode == _DIRECTORY

    @property
    def is_symlink(self) -> bool:
        return self.mode == _SYMLINK

    @property
    def is_file(self) -> bool:
        return self.mode not in (_DIRECTORY, _SYMLINK, _SUBMODULE)


class Staging:
    """Read the objects of a repository, and keep new ones until `flush`. Belongs to one thread.

    New objects that are not flushed are forgotten.
    """

    def __init__(self, repository: pygit2.Repository) -> None:
        self._stored = StoredObjects(repository)
        self.shallow: bool = repository.is_shallow
        self._new: dict[str, tuple[ObjectType, bytes]] = {}
        self._trees: dict[str, dict[str, TreeEntry]] = {}
        self._entries = 0

    def read(self, oid: str) -> bytes:
        """Return the content of an object; raises `ObjectTooLarge` before it is unpacked."""
        staged = self._new.get(oid)
        if staged is not None:
            return staged[1]
        try:
            return self._stored.read(oid)
        except (KeyError, pygit2.GitError) as error:
            raise self._unreadable(oid) from error

    def header(self, oid: str) -> tuple[int, int]:
        """Return the type of an object, and the size of its content in bytes."""
        staged = self._new.get(oid)
        if staged is not None:
            return staged[0], len(staged[1])
        try:
            return self._stored.header(oid)
        except (KeyError, pygit2.GitError) as error:
            raise self._unreadable(oid) from error

    def size(self, oid: str) -> int:
        """Return the size of an object's content in bytes, from its header."""
        return self.header(oid)[1]

    def has(self, oid: str) -> bool:
        """Return whether an object exists."""
        return oid in self._new or oid in self._stored

    def tree(self, oid: str) -> dict[str, TreeEntry]:
        """Return the entries of a tree by name, which are shared and must not be changed.

        Raises `GitError` for too many.
        """
        known = self._trees.get(oid)
        if known is None:
            try:
                known = _parse_tree(self.read(oid))
            except ValueError:
                raise DamagedRepository(f"tree {oid} can not be read") from None
            self._entries += len(known)
            if self._entries > TOTAL_ENTRIES_LIMIT:
                raise GitError(
                    f"directories of more than {TOTAL_ENTRIES_LIMIT:,} files and directories in all are not looked at",
                    remedy="Name a smaller directory",
                )
            self._trees[oid] = known
        return known

    def absent_beside(self, ids: frozenset[str], limit: int) -> list[str]:
        """Return missing files of the directories read so far that contain one of `ids`."""
        trees = [entries.values() for entries in self._trees.values()]
        near = (entry for entries in trees if any(entry.id in ids for entry in entries) for entry in entries)
        return list(islice((entry.id for entry in near if entry.is_file and not self.has(entry.id)), limit))

    def add_blob(self, content: bytes) -> str:
        return self._add(ObjectType.BLOB, content)

    def add_tree(self, entries: dict[str, TreeEntry]) -> str:
        return self._add(ObjectType.TREE, _format_tree(entries))

    def add_commit(
        self,
        *,
        tree: str,
        parent: str | None,
        message: str,
        time: datetime,
        author: str = KARDINAL,
        committer: str = KARDINAL,
        signer: Signer | None = None,
    ) -> str:
        """Add a commit and return its id; sign it if `signer` is given.

        Author and committer have the form `Name <address>`, and default to `KARDINAL`.
        """
        stamp = f"{int(time.timestamp())} +0000"
        parents = f"parent {parent}\n" if parent else ""
        head = f"tree {tree}\n{parents}author {author} {stamp}\ncommitter {committer} {stamp}\n"
        signature = ""
        if signer is not None:
            lines = signer.sign(f"{head}\n{message}".encode()).replace("\n", "\n ")
            signature = f"gpgsig {lines}\n"
        return self._add(ObjectType.COMMIT, f"{head}{signature}\n{message}".encode())

    def flush(self, oid: str) -> None:
        """Write `oid` and the new objects that it needs into the repository, pointers after their targets."""
        staged = self._new.pop(oid, None)
        if staged is None:
            return
        kind, content = staged
        if kind == ObjectType.COMMIT:
            header = content.partition(b"\n\n")[0].decode("ascii", "replace")
            needed = [line.split(" ")[1] for line in header.splitlines() if line.startswith(("tree ", "parent "))]
        elif kind == ObjectType.TREE:
            needed = [entry.id for entry in _parse_tree(content).values()]
        else:
            needed = []
        for other in needed:
            self.flush(other)
        self._stored.write(kind, content)

    def _unreadable(self, oid: str) -> DamagedRepository:
        """Return the error for an object that cannot be read.

        A file, and its neighbours, may only be missing in the mirror.
        """
        for entries in self._trees.values():
            if any(entry.id == oid and not entry.is_directory for entry in entries.values()):
                return ObjectsMissing(frozenset({oid, *self._neighbours(entries)}))
        return DamagedRepository(f"object {oid} can not be read")

    def _neighbours(self, entries: Mapping[str, TreeEntry]) -> Iterator[str]:
        """Yield missing files in a directory and below it that will probably be read next.

        It is a guess: large directories are skipped, and their number is limited.
        """
        pending = deque([entries])
        left = _NEIGHBOURS
        looks = _LOOKED_AT
        while pending and left > 0:
            entries = pending.popleft()
            for name, entry in entries.items():
                if entry.is_file and name.endswith(_PROBABLE) and not self.has(entry.id):
                    yield entry.id
                    left -= 1
            for entry in entries.values():
                if left <= 0 or looks <= 0:
                    break
                if entry.is_directory and self.has(entry.id) and self.size(entry.id) <= _SMALL:
                    looks -= 1
                    pending.append(self.tree(entry.id))

    def _add(self, kind: ObjectType, content: bytes) -> str:
        header = f"{kind.name.lower()} {len(content)}\0".encode()
        oid = hashlib.sha1(header + content, usedforsecurity=False).hexdigest()
        self._new[oid] = (kind, content)
        return oid


def check_depth(directory: str) -> None:
    """Refuse a directory that is too deep for its subdirectories to be read."""
    if directory.count("/") >= DEPTH_LIMIT:
        raise GitError(
            f"{directory[:200]}: is nested deeper than {DEPTH_LIMIT} directories, and not looked at",
            remedy="Name another directory",
        )


def _parse_tree(data: bytes) -> dict[str, TreeEntry]:
    entries: dict[str, TreeEntry] = {}
    at = 0
    while at < len(data):
        if len(entries) >= ENTRIES_LIMIT:
            raise GitError(
                f"a directory has more than {ENTRIES_LIMIT:,} files and directories, and is not looked at",
                remedy="Put its files into several directories",
            )
        space = data.index(b" ", at)
        end = data.index(b"\0", space)
        name = data[space + 1 : end].decode("utf-8", "surrogateescape")
        entries[name] = TreeEntry(int(data[at:space], 8), data[end + 1 : end + 1 + _ID_BYTES].hex())
        at = end + 1 + _ID_BYTES
    return entries


def _format_tree(entries: dict[str, TreeEntry]) -> bytes:
    # Git sorts a directory as if its name ended in a slash.
    lines = sorted(
        (name.encode("utf-8", "surrogateescape") + (b"/" if entry.is_directory else b""), entry)
        for name, entry in entries.items()
    )
    return b"".join(b"%o %s\0%s" % (entry.mode, name.rstrip(b"/"), bytes.fromhex(entry.id)) for name, entry in lines)
