"""Read and edit a tree without a work tree, and without a way out of it.

An edit is a pure function from a tree to the files it wants changed. It may run several times, on newer trees, so it
must read only the tree it is given. Planning and landing run the same edit.

Paths come from Pipelines, rendered names and the repository itself, so every segment is checked: no absolute path, no
`..`, nothing inside `.git`. For an edit, a symbolic link anywhere on a path is refused, because gates bind to the path
that was named, while the link would lead to another one. Other readers follow links inside the tree; `within` restricts
the tree to one directory, and its links may then not leave that directory.

An edit also has a budget. Sizes are read from the headers of objects before anything is unpacked, because a file of a
gigabyte may have been a megabyte to transfer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.git.objects import Staging, TreeEntry, check_depth
from kardinal.tree.edit import EDITED_LIMIT, READ_LIMIT, TOTAL_READ_LIMIT, Changes, EditError, split_path, too_large

__all__ = ["File", "TreeView", "apply"]

_MAX_LINKS = 40
"""The most symbolic links followed for one path; the same as in Linux."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a tree. `link` is the target of a symbolic link."""

    path: str
    link: str | None = None


@dataclass(slots=True)
class _Budget:
    """The bytes that one edit may still read."""

    left: int = TOTAL_READ_LIMIT
    listed: set[str] = field(default_factory=set)

    def take(self, path: str, size: int) -> None:
        if size > READ_LIMIT:
            raise too_large(path, size, READ_LIMIT, used="read")
        if size > self.left:
            raise EditError(
                path,
                f"not looked at: one edit reads at most {TOTAL_READ_LIMIT:,} bytes in all",
                remedy="Promote fewer files in one step",
            )
        self.left -= size


class TreeView:
    """A `Tree` over one tree object. A view created by `for_edit` has the limits of an edit."""

    def __init__(self, staging: Staging, tree: str, *, prefix: str = "", budget: _Budget | None = None) -> None:
        self._staging = staging
        self._tree = tree
        self._prefix = prefix
        self._budget = budget

    @classmethod
    def for_edit(cls, staging: Staging, tree: str) -> TreeView:
        """Return the view of a tree for an edit: symbolic links are refused, and it has a budget of its own."""
        return cls(staging, tree, budget=_Budget())

    def beside(self, tree: str) -> TreeView:
        """Return the view of another tree object of the repository, with the same budget."""
        return TreeView(self._staging, tree, budget=self._budget)

    def of_input(self, staging: Staging, tree: str, *, name: str) -> TreeView:
        """Return the view of a tree object of another repository, with the same budget; errors name `name:/path`."""
        return TreeView(staging, tree, prefix=f"{name}:/", budget=self._budget)

    def read(self, path: str) -> bytes | None:
        entry = self._find(path)
        if entry is None or not entry.is_file:
            return None
        if self._budget is not None:
            self._budget.take(self._prefix + path, self._staging.size(entry.id))
        return self._staging.read(entry.id)

    def size(self, path: str) -> int | None:
        entry = self._find(path)
        return self._staging.size(entry.id) if entry and entry.is_file else None

    def entries(self, directory: str) -> list[str]:
        entry = self._find(directory)
        return sorted(self._list(entry.id, directory)) if entry and entry.is_directory else []

    def is_dir(self, path: str) -> bool:
        entry = self._find(path)
        return entry is not None and entry.is_directory

    def identify(self, path: str) -> str | None:
        """Return the id of a file or directory; equal ids mean equal content. None if there is no such path."""
        entry = self._find(path)
        return entry.id if entry else None

    def resolve(self, path: str) -> str | None:
        """Return the path with all symbolic links followed; None if there is no such path."""
        found = self._locate(path)
        return "/".join(found[0]) if found else None

    def walk(self, directory: str) -> Iterator[File]:
        """Yield every file and every symbolic link below a directory; links are not followed."""
        entry = self._find(directory)
        if entry is not None and entry.is_directory:
            yield from self._below(entry.id, "/".join(split_path(directory)))

    def _below(self, tree: str, directory: str) -> Iterator[File]:
        check_depth(directory)
        for name, entry in self._staging.tree(tree).items():
            path = f"{directory}/{name}" if directory else name
            if entry.is_directory:
                yield from self._below(entry.id, path)
            elif entry.is_symlink:
                yield File(path, self._staging.read(entry.id).decode("utf-8", "surrogateescape"))
            elif entry.is_file:
                yield File(path)

    def within(self, directory: str) -> TreeView:
        entry = self._find(directory)
        if entry is None or not entry.is_directory:
            raise EditError(self._prefix + directory, "no such directory in the repository")
        prefix = f"{self._prefix}{directory.strip('/')}/"
        return TreeView(self._staging, entry.id, prefix=prefix, budget=self._budget)

    def _list(self, tree: str, path: str) -> Mapping[str, TreeEntry]:
        """Return the entries of the tree at `path`, or on the way to it."""
        if self._budget is not None and tree not in self._budget.listed:
            self._budget.take(f"{self._prefix}{path}".rstrip("/") or ".", self._staging.size(tree))
            self._budget.listed.add(tree)
        return self._staging.tree(tree)

    def _find(self, path: str) -> TreeEntry | None:
        found = self._locate(path)
        return found[1] if found else None

    def _locate(self, path: str) -> tuple[list[str], TreeEntry] | None:
        """Return the entry at a path, and the segments that lead there without a link."""
        pending = split_path(path)
        names: list[str] = []
        trail = [TreeEntry.directory(self._tree)]
        links = 0
        while pending:
            name = pending.pop(0)
            if name == "..":
                if not names:
                    raise self._leaves(path)
                names.pop()
                trail.pop()
                continue
            entry = self._list(trail[-1].id, "/".join(names)).get(name)
            if entry is None:
                return None
            if entry.is_symlink and self._budget is not None:
                raise EditError(
                    self._prefix + path,
                    f"{name} is a symbolic link",
                    remedy="Name the path that it points to in the Pipeline, or replace it",
                )
            if entry.is_symlink:
                links += 1
                target = self._staging.read(entry.id).decode("utf-8", "surrogateescape")
                if target.startswith("/") or links > _MAX_LINKS:
                    raise self._leaves(path)
                pending = [segment for segment in target.split("/") if segment not in ("", ".")] + pending
            elif entry.is_directory:
                names.append(name)
                trail.append(entry)
            else:
                return None if pending else ([*names, name], entry)
        return names, trail[-1]

    def _leaves(self, path: str) -> EditError:
        place = self._prefix.rstrip("/") or "the repository"
        return EditError(
            self._prefix + path,
            f"a symbolic link on this path leads out of {place}",
            remedy="Replace the link by the file it points to",
        )


def apply(staging: Staging, tree: str, changes: Changes) -> str:
    """Return the id of `tree` after `changes`. Existing files keep their mode; empty directories are removed."""
    root = _Directory.read(staging, tree)
    for path, content in changes.items():
        segments = split_path(path)
        if not segments:
            raise EditError(path, "names no file")
        if content is None:
            root.delete(staging, segments, path)
            continue
        if len(content) > EDITED_LIMIT:
            raise too_large(path, len(content), EDITED_LIMIT, used="written")
        root.put(staging, segments, content, path)
    return root.written(staging) or staging.add_tree({})


@dataclass(slots=True)
class _Directory:
    """A directory while files below it change: it is read once and written once, however many files change.

    `entries` has the files, and the subdirectories as they were read. `below` has those that a change leads into.
    """

    tree: str | None
    """The id of the tree that was read; None for a new directory."""
    entries: dict[str, TreeEntry]
    below: dict[str, _Directory] = field(default_factory=dict)

    @classmethod
    def read(cls, staging: Staging, tree: str) -> _Directory:
        return cls(tree, dict(staging.tree(tree)))

    def put(self, staging: Staging, segments: list[str], content: bytes, path: str) -> None:
        """Write the file at `segments` below this directory; `path` is for errors."""
        name, *rest = segments
        there = self._entry(name, path)
        if rest:
            directory = self._subdirectory(staging, name)
            if directory is None and there is not None:
                raise EditError(path, f"{name} is not a directory")
            if directory is None:
                directory = self.below[name] = _Directory(None, {})
            directory.put(staging, rest, content, path)
            return
        self._check_file(name, path)
        blob = staging.add_blob(content)
        self.entries[name] = TreeEntry.file(blob) if there is None else TreeEntry(there.mode, blob)

    def delete(self, staging: Staging, segments: list[str], path: str) -> None:
        """Remove the file at `segments`, which need not exist, and the directories that are empty without it."""
        name, *rest = segments
        self._entry(name, path)
        if rest:
            directory = self._subdirectory(staging, name)
            if directory is None:
                return
            directory.delete(staging, rest, path)
            if not directory.entries and not directory.below:
                del self.below[name]
                self.entries.pop(name, None)
            return
        self._check_file(name, path)
        self.entries.pop(name, None)

    def written(self, staging: Staging) -> str | None:
        """Return the id of the tree with all changes; None if it would be empty."""
        entries = dict(self.entries)
        for name, directory in self.below.items():
            tree = directory.written(staging)
            if tree is not None:
                entries[name] = TreeEntry.directory(tree)
        if self.tree is not None and entries == staging.tree(self.tree):
            return self.tree
        return staging.add_tree(entries) if entries else None

    def _entry(self, name: str, path: str) -> TreeEntry | None:
        there = self.entries.get(name)
        if there is not None and there.is_symlink:
            raise _is_link(path, name)
        return there

    def _check_file(self, name: str, path: str) -> None:
        there = self.entries.get(name)
        if name in self.below or (there is not None and not there.is_file):
            raise EditError(path, f"{name} is not a file")

    def _subdirectory(self, staging: Staging, name: str) -> _Directory | None:
        """Return a subdirectory to change; None if there is none."""
        there = self.entries.get(name)
        if name not in self.below and there is not None and there.is_directory:
            self.below[name] = _Directory.read(staging, there.id)
        return self.below.get(name)


def _is_link(path: str, name: str) -> EditError:
    return EditError(path, f"{name} is a symbolic link", remedy="Name the file it points to")


FOREIGN = ForeignBytes(
    "files that are edited",
    of="Git writer",
    size="as Git objects",
    unpacked=f"known from the header: {mebibytes(EDITED_LIMIT)} where they are edited, {mebibytes(READ_LIMIT)} where "
    f"they are read, {mebibytes(TOTAL_READ_LIMIT)} for one edit",
    structure="YAML and JSON: events are counted before they are composed, 10,000 of a kustomization, 50,000 of another"
    " file; 100 levels; 1,000 aliases",
    time="one attempt of a step",
    held="what one edit reads; 4 edits at once",
    decoded="thread",
    tests=(
        "attacks/test_git_edits.py::test_a_large_kustomization_is_refused_before_it_is_read",
        "attacks/test_git_edits.py::test_a_kustomization_that_is_costly_to_understand_is_refused",
        "attacks/test_git_edits.py::test_a_file_that_grows_when_it_is_unpacked_takes_no_memory",
        "attacks/test_git_edits.py::test_a_directory_of_very_many_files_is_refused",
    ),
)
