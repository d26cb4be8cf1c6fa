"""Reading and editing a tree without a work tree, and without a way out of it.

An edit is a pure function from a tree to the files it wants changed. It may run several times, on newer trees, so
it must look at nothing but the tree it is given. Planning and landing run the same edit.

Paths come from Pipelines, rendered names and the repository itself, so every segment is checked: nothing absolute,
no `..`, nothing inside `.git`. Symbolic links are followed when reading and refused when they leave the tree;
`within` narrows the tree to one directory, whose links may then not leave that directory. Writing through a link is
refused: the file that would change is not the one that was named.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kardinal.git.objects import Entry, Staging
from kardinal.steps.edit import EditError

__all__ = ["File", "TreeView", "apply", "split_path"]

_MAX_LINKS = 40
"""Symbolic links followed for one path; what Linux allows."""


@dataclass(frozen=True, slots=True)
class File:
    """One file of a tree; `link` is where a symbolic link points to."""

    path: str
    link: str | None = None


class TreeView:
    """A `Tree` over one tree object."""

    def __init__(self, staging: Staging, tree: str, *, prefix: str = "") -> None:
        self._staging = staging
        self._tree = tree
        self._prefix = prefix

    def read(self, path: str) -> bytes | None:
        entry = self._find(path)
        return self._staging.read(entry.id) if entry and entry.is_file else None

    def entries(self, directory: str) -> list[str]:
        entry = self._find(directory)
        return sorted(self._staging.tree(entry.id)) if entry and entry.is_directory else []

    def is_dir(self, path: str) -> bool:
        entry = self._find(path)
        return entry is not None and entry.is_directory

    def identify(self, path: str) -> str | None:
        """Return the id of a file or directory: the same id is the same content. None when there is no such path."""
        entry = self._find(path)
        return entry.id if entry else None

    def resolve(self, path: str) -> str | None:
        """Return the path with all symbolic links followed; None when there is no such path."""
        found = self._locate(path)
        return "/".join(found[0]) if found else None

    def walk(self, directory: str) -> Iterator[File]:
        """Yield every file and every symbolic link below a directory; links are not followed."""
        entry = self._find(directory)
        if entry is not None and entry.is_directory:
            yield from self._below(entry.id, "/".join(split_path(directory)))

    def _below(self, tree: str, directory: str) -> Iterator[File]:
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
        return TreeView(self._staging, entry.id, prefix=f"{self._prefix}{directory.strip('/')}/")

    def _find(self, path: str) -> Entry | None:
        found = self._locate(path)
        return found[1] if found else None

    def _locate(self, path: str) -> tuple[list[str], Entry] | None:
        """Find what is at a path, and the segments that lead there without a link."""
        pending = split_path(path)
        names: list[str] = []
        trail = [Entry.directory(self._tree)]
        links = 0
        while pending:
            name = pending.pop(0)
            if name == "..":
                if not names:
                    raise self._leaves(path)
                names.pop()
                trail.pop()
                continue
            entry = self._staging.tree(trail[-1].id).get(name)
            if entry is None:
                return None
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


def split_path(path: str) -> list[str]:
    """Return the segments of a path inside a repository; the empty path and `.` are its root."""
    segments = [segment for segment in path.split("/") if segment not in ("", ".")]
    if path.startswith("/") or "\\" in path or "\0" in path:
        raise EditError(path, "not a relative path inside the repository")
    for segment in segments:
        if segment == "..":
            raise EditError(path, "`..` is not allowed in a path")
        if segment.lower() == ".git":
            raise EditError(path, "`.git` is not part of the repository's content")
    return segments


def apply(staging: Staging, tree: str, files: Mapping[str, bytes]) -> str:
    """Return the id of `tree` with the content of `files` put in; modes of existing files stay."""
    for path, content in files.items():
        segments = split_path(path)
        if not segments:
            raise EditError(path, "names no file")
        tree = _put(staging, tree, segments, content, path)
    return tree


def _put(staging: Staging, tree: str, segments: list[str], content: bytes, path: str) -> str:
    entries = staging.tree(tree)
    name, below = segments[0], segments[1:]
    there = entries.get(name)
    if there is not None and there.is_symlink:
        raise EditError(path, f"{name} is a symbolic link", remedy="Name the file it points to")
    if below:
        if there is None:
            subtree = staging.add_tree({})
        elif there.is_directory:
            subtree = there.id
        else:
            raise EditError(path, f"{name} is not a directory")
        changed = Entry.directory(_put(staging, subtree, below, content, path))
    elif there is None:
        changed = Entry.file(staging.add_blob(content))
    elif there.is_file:
        changed = Entry(there.mode, staging.add_blob(content))
    else:
        raise EditError(path, f"{name} is not a file")
    return tree if changed == there else staging.add_tree({**entries, name: changed})
