"""Inputs: trees of one repository that the edit of another repository reads.

An edit runs inside the operation of the repository that it changes. A missing object of an input is no damage to that
repository, nor to other edits that land with it: it fails this edit only, and `with_inputs` fetches the object and runs
the operation again.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from kardinal.git.backend import Backend, Mending
from kardinal.git.errors import DamagedRepository, ObjectsMissing
from kardinal.git.objects import Staging
from kardinal.git.tree import TreeView
from kardinal.objects.errors import KardinalError
from kardinal.processes.threads import off_loop
from kardinal.tree.edit import Tree

__all__ = ["InputIncomplete", "open_input", "with_inputs"]

T = TypeVar("T")

_AT_ONCE = 2_000
"""The most files that are fetched together with a missing file of the same directories, which will be needed, too."""


class InputIncomplete(KardinalError):
    """An input lacks an object that an edit reads; the next attempt finds it once `cause` is repaired."""

    transient = True

    def __init__(self, backend: Backend, cause: DamagedRepository) -> None:
        super().__init__(f"{backend.url.text}: {cause.message}", remedy=cause.remedy)
        self.backend = backend
        self.cause = cause


async def with_inputs(operation: Callable[[], Awaitable[T]]) -> T:
    """Run an operation with edits, and run it again after fetching the objects that its inputs lacked."""
    mendings: dict[str, Mending] = {}
    while True:
        try:
            return await operation()
        except InputIncomplete as incomplete:
            backend = incomplete.backend
            mending = mendings.setdefault(backend.url.text, Mending(backend))
            await mending.after(incomplete.cause)


@off_loop
def open_input(backend: Backend, wanted: str, name: str, tree: Tree) -> Tree:
    """Return the tree object `wanted` of a repository for an edit of `tree`; both share one limit on reading."""
    if not isinstance(tree, TreeView):
        raise TypeError("only an edit of a repository has inputs")
    with _complete(backend):
        staging = Staging(backend.open())
    return _Input(tree.of_input(staging, wanted, name=name), staging, backend)


class _Input:
    """A `Tree` that raises `InputIncomplete` for a missing object."""

    def __init__(self, view: TreeView, staging: Staging, backend: Backend) -> None:
        self._view = view
        self._staging = staging
        self._backend = backend

    def read(self, path: str) -> bytes | None:
        with _complete(self._backend, self._staging):
            return self._view.read(path)

    def size(self, path: str) -> int | None:
        with _complete(self._backend, self._staging):
            return self._view.size(path)

    def entries(self, directory: str) -> list[str]:
        with _complete(self._backend, self._staging):
            return self._view.entries(directory)

    def is_dir(self, path: str) -> bool:
        with _complete(self._backend, self._staging):
            return self._view.is_dir(path)

    def identify(self, path: str) -> str | None:
        with _complete(self._backend, self._staging):
            return self._view.identify(path)

    def within(self, directory: str) -> _Input:
        with _complete(self._backend, self._staging):
            return _Input(self._view.within(directory), self._staging, self._backend)


@contextmanager
def _complete(backend: Backend, staging: Staging | None = None) -> Iterator[None]:
    try:
        yield
    except ObjectsMissing as missing:
        beside = staging.absent_beside(missing.ids, _AT_ONCE) if staging is not None else ()
        raise InputIncomplete(backend, ObjectsMissing(missing.ids | frozenset(beside))) from None
    except DamagedRepository as error:
        raise InputIncomplete(backend, error) from None
