"""The processes that merge and render a catalog (`kardinal.catalog.worker`), and the calls to them.

A worker executes templates of others. It is started behind the walls of the renderers: it reads Python and its packages
and the trees of one namespace, writes to a directory of its own, and has no network, no environment and no open file of
this process. Its memory, its time and its answers are bounded. It is kept for the next call of the same namespace, and
ended before another namespace's.

This process imports none of the packages that merge and render: Go's runtime hangs after a fork, and an error in one of
them must not reach the Secrets here.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Final, TypeVar

import structlog

import kardinal
from kardinal.bounded import mebibytes
from kardinal.catalog import messages
from kardinal.catalog.errors import NOWHERE, CatalogError, Where
from kardinal.catalog.messages import LONGEST_ANSWER, encode
from kardinal.catalog.values import InstanceFiles, Layout, Merged, Node, RenderJob
from kardinal.processes.errors import ChildDeadlineExceeded, ChildStopped, ShareExceeded, WorkerEnded
from kardinal.processes.isolation import confine, find_walls
from kardinal.processes.memory_shares import AVAILABLE, MemoryPool, children_memory
from kardinal.processes.workers import AnswerTooLong, WorkerProcess

__all__ = ["INSTALL_EXTRA", "CatalogWorkers", "WorkerEngine"]

log = structlog.get_logger("kardinal.catalog.engine")

INSTALL_EXTRA: Final = "Install what compiles catalogs: pip install 'kardinal[catalog]'"

_PACKAGES: Final = ("reclass_rs", "_gojsonnet", "jinja2")
_PROGRAM: Final = ("-m", "kardinal.catalog.worker")
_RENDERERS: Final = ("helm", "kustomize")
"""The programs that a worker may run, if they are on this process's PATH."""
_CPU: Final = 60
"""Seconds of CPU for one request: a merge, a file or an instance."""
_DEADLINE: Final = 180.0
_LEAST_MEMORY: Final = 192 << 20
_MOST_MEMORY: Final = 1 << 30
"""The memory of one worker. If a quarter of the container's memory is less than the least, there is one worker."""
_NOT_STARTED: Final = 125
"""The exit status of `kardinal.processes.confined` if it cannot start the program."""

T = TypeVar("T")


class CatalogWorkers:
    """The workers of a program, at most `jobs` at a time.

    `memory`: bytes of the container, of which all workers together get a quarter. Defaults to the container's limit.
    `program`: the arguments of Python that start a worker. Belongs to one event loop, except `close`.
    """

    def __init__(self, *, jobs: int, memory: int = AVAILABLE, program: Sequence[str] = _PROGRAM) -> None:
        part = children_memory(memory)
        self.jobs = min(jobs, max(part // _LEAST_MEMORY, 1))
        self._memory = MemoryPool(each=min(part // self.jobs, _MOST_MEMORY), total=part)
        self._threads = ThreadPoolExecutor(self.jobs, thread_name_prefix="catalog")
        self._places = asyncio.Semaphore(self.jobs)
        self._idle: list[_Worker] = []
        self._all: set[_Worker] = set()
        self._program = tuple(program)
        self._closed = False

    async def start(self) -> None:
        """Log the walls that this machine lacks."""
        if missing := (await asyncio.to_thread(find_walls)).missing:
            log.warning("catalogs are compiled without isolation", missing=missing)

    async def stop(self) -> None:
        """Do the same as `close`, which blocks, on a thread."""
        await asyncio.to_thread(self.close)

    def close(self) -> None:
        """Kill the workers, remove their directories, and start no others. Blocks."""
        self._closed = True
        for worker in self._all:
            worker.process.kill()
        self._threads.shutdown()
        for worker in self._all:
            worker.end()
        self._all.clear()
        self._idle.clear()

    async def run(self, trees: tuple[Path, ...], call: Callable[[_Worker], T]) -> T:
        """Return what `call` returns for a worker that can read `trees`; it is called on a thread."""
        if missing := [package for package in _PACKAGES if find_spec(package) is None]:
            raise CatalogError("refused", f"there is no package {', '.join(missing)}", remedy=INSTALL_EXTRA)
        async with self._places:
            worker = await self._take(trees)
            running = asyncio.get_running_loop().run_in_executor(self._threads, call, worker)
            try:
                result = await asyncio.shield(running)
            except asyncio.CancelledError:
                worker.process.kill()
                await asyncio.wait([running])
                running.exception()
                raise
            finally:
                if worker.process.ended or self._closed:
                    await self._end(worker)
                else:
                    self._idle.append(worker)
            return result

    async def _take(self, trees: tuple[Path, ...]) -> _Worker:
        """Return an idle worker for these trees, or a new one; idle ones for others are ended before."""
        found = None
        for worker in list(self._idle):
            if worker.trees != trees or worker.process.ended:
                self._idle.remove(worker)
                await self._end(worker)
            elif found is None:
                self._idle.remove(worker)
                found = worker
        if found is None:
            loop = asyncio.get_running_loop()
            found = await loop.run_in_executor(self._threads, _Worker, trees, self._memory, self._program)
            self._all.add(found)
        return found

    async def _end(self, worker: _Worker) -> None:
        self._all.discard(worker)
        await asyncio.to_thread(worker.end)


class _Worker:
    """A worker process, and its directory, in which the layout of the latest call lies."""

    def __init__(self, trees: tuple[Path, ...], memory: MemoryPool, program: tuple[str, ...]) -> None:
        self.trees = trees
        self.inventory: object = None
        """The inventory that the process has, by identity."""
        self._home = Path(tempfile.mkdtemp(prefix="kardinal-catalog-")).resolve()
        self._memory = memory
        self._layout: Layout | None = None
        self._root = self._home
        self._layouts = 0
        command = [sys.executable, "-I", *program, f"--memory={memory.mapped}", f"--cpu={_CPU}"]
        renderers = [found for name in _RENDERERS if (found := shutil.which(name))]
        walled = confine(
            command,
            programs=[*renderers, sys.executable],
            home=self._home,
            output=None,
            network=False,
            walls=find_walls(),
            readable=(*_python(), *trees),
        )
        environment = {
            "GOMEMLIMIT": f"{memory.each * 3 // 4}B",
            "GOTRACEBACK": "none",
            "LC_ALL": "C.UTF-8",
            "PATH": os.pathsep.join(dict.fromkeys(os.path.dirname(found) for found in renderers)),
            "TMPDIR": str(self._home),
        }
        self.process = WorkerProcess(walled, name="the worker", environment=environment, memory=memory)

    def end(self) -> None:
        """Kill the process, and remove its directory."""
        self.process.close()
        shutil.rmtree(self._home, ignore_errors=True)

    def root_of(self, layout: Layout) -> str:
        """Make the directory of a layout, unless it is that of the call before; return its path."""
        if layout != self._layout:
            if self._layout is not None:
                shutil.rmtree(self._root, ignore_errors=True)
            self._layout = None
            self._layouts += 1
            self._root = self._home / f"layout-{self._layouts}"
            _lay_out(layout, self._root, self.trees)
            self._layout = layout
        return str(self._root)

    def ask(self, request: bytes, where: Where = NOWHERE) -> tuple[dict[str, Any], memoryview]:
        """Return header and content of the answer. `where`: the place of a limit."""
        try:
            answer = self.process.ask(request, deadline=_DEADLINE, longest=LONGEST_ANSWER)
        except ChildStopped as stopped:
            raise self._failed(stopped, where) from stopped
        header, content = messages.parse(answer)
        messages.raise_error(header)
        return header, content

    def _failed(self, stopped: ChildStopped, where: Where) -> CatalogError:
        memory = mebibytes(self._memory.each)
        match stopped:
            case ChildDeadlineExceeded():
                return CatalogError("limit", f"it takes longer than {_DEADLINE:.0f} s", where=where)
            case AnswerTooLong():
                return messages.too_large(where.instance, f"more than {mebibytes(messages.TOTAL)}")
            case ShareExceeded():
                return CatalogError(
                    "limit",
                    f"it needs more than {memory} of memory",
                    where=where,
                    remedy=stopped.remedy,
                    transient=stopped.transient,
                )
            case WorkerEnded(code=code) if code == -signal.SIGXCPU:
                return CatalogError("limit", f"it takes more than {_CPU} s of CPU", where=where)
            case WorkerEnded(code=code, text=text) if code == _NOT_STARTED:
                return CatalogError("refused", text.strip(), remedy="See docs/security.md for what a worker needs")
        return CatalogError(
            "limit",
            f"it crashes, or needs more than {memory} of memory or a value that is nested too deep",
            where=where,
        )


class WorkerEngine:
    """The engine of one namespace, whose workers read `trees`: directories with all trees of its layouts."""

    def __init__(self, workers: CatalogWorkers, *trees: Path) -> None:
        self._workers = workers
        self._trees = tuple(path.absolute() for path in trees)

    async def merge(self, layout: Layout, nodes: Mapping[str, Node], *, tolerate_missing: bool) -> Mapping[str, Merged]:
        """Return the merge of each node. `tolerate_missing`: classes that do not exist count as empty."""

        def call(worker: _Worker, *, walk_first: bool = False) -> Mapping[str, Merged]:
            request = {
                "merge": {name: asdict(node) for name, node in nodes.items()},
                "root": worker.root_of(layout),
                "tolerateMissing": tolerate_missing,
                "walkFirst": walk_first,
            }
            header, _ = worker.ask(encode(request))
            found = header.get("nodes")
            if not isinstance(found, dict) or found.keys() != nodes.keys():
                raise CatalogError("render", "the worker answered with other nodes than it was asked for")
            return {name: messages.merged_of(found[name]) for name in nodes}

        try:
            return await self._workers.run(self._trees, call)
        except CatalogError as error:
            if not isinstance(error.__cause__, WorkerEnded):
                raise
        # Classes that include each other crash the merge; a walk before it finds and names them.
        return await self._workers.run(self._trees, partial(call, walk_first=True))

    async def evaluate(self, layout: Layout, file: str, variables: Mapping[str, str]) -> object:
        """Return the value of a Jsonnet file of the layout; `variables` are its external variables."""

        def call(worker: _Worker) -> object:
            request = {"evaluate": file, "root": worker.root_of(layout), "variables": dict(variables)}
            header, _ = worker.ask(encode(request), Where(file=file))
            return header.get("value")

        return await self._workers.run(self._trees, call)

    async def render(
        self, layout: Layout, jobs: Sequence[RenderJob], inventory: Mapping[str, Merged]
    ) -> Sequence[InstanceFiles]:
        """Return the files of each instance, in the order of `jobs`. `inventory` has the nodes of all instances.

        If several instances fail, the error is that of the first one.
        """
        encoded = await asyncio.to_thread(
            encode, {"inventory": {name: asdict(node) for name, node in inventory.items()}}
        )
        left = iter(enumerate(jobs))
        rendered: dict[int, InstanceFiles] = {}
        failed: dict[int, CatalogError] = {}

        def call(job: RenderJob, worker: _Worker) -> InstanceFiles:
            root = worker.root_of(layout)
            if worker.inventory is not encoded:
                worker.ask(encoded)
                worker.inventory = encoded
            request = encode({"render": asdict(job), "root": root})
            header, content = worker.ask(request, Where(instance=job.instance))
            return messages.files_of(job.instance, header, content)

        async def render_next() -> None:
            for at, job in left:
                try:
                    rendered[at] = await self._workers.run(self._trees, partial(call, job))
                    _check_total(rendered)
                except CatalogError as error:
                    failed[at] = error
                if failed:
                    return

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._workers.jobs, len(jobs))):
                group.create_task(render_next())
        if failed:
            raise failed[min(failed)]
        return [rendered[at] for at in range(len(jobs))]

    async def origin(self, layout: Layout, node: Node, path: str) -> Sequence[tuple[str, object]]:
        """Return the classes that set the parameter at `path` (`nginx.replicas`) of a node, in the order of the merge.

        Each with the value that it has there. The node's own parameters come last, by the name `(node)`.
        """

        def call(worker: _Worker) -> Sequence[tuple[str, object]]:
            header, _ = worker.ask(encode({"origin": asdict(node), "root": worker.root_of(layout), "path": path}))
            values = header.get("values")
            if not isinstance(values, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in values):
                raise CatalogError("render", "the worker answered with something else than classes and values")
            return [(str(name), value) for name, value in values]

        return await self._workers.run(self._trees, call)


def _check_total(rendered: Mapping[int, InstanceFiles]) -> None:
    if sum(len(made.files) for made in rendered.values()) > messages.FILES:
        raise messages.too_large("", f"more than {messages.FILES:,} files")
    if sum(len(content) for made in rendered.values() for content in made.files.values()) > messages.TOTAL:
        raise messages.too_large("", f"more than {mebibytes(messages.TOTAL)}")


def _python() -> Iterator[Path]:
    """Yield the directories of Python, of kardinal and of the packages of a worker."""
    yield from (Path(sys.prefix), Path(sys.base_prefix))
    for module in (kardinal.__file__, *(found.origin for name in _PACKAGES if (found := find_spec(name)))):
        if module is not None:
            yield Path(module).resolve().parent


def _lay_out(layout: Layout, root: Path, trees: tuple[Path, ...]) -> None:
    """Make the directory of a layout. Raises `CatalogError` for a path or a link that leaves where it belongs."""
    root.mkdir()
    for path in (*layout.links, *layout.files):
        parts = PurePosixPath(path).parts
        above = {"/".join(parts[:length]) for length in range(1, len(parts))}
        if "/".join(parts) != path or ".." in parts or parts[:1] in ((), ("/",)) or "\0" in path:
            raise CatalogError("refused", f"{path!r} is no path of a compilation")
        if between := above & (layout.links.keys() | layout.files.keys()):
            raise CatalogError("refused", f"{path} lies below {min(between)}, which is a file or a tree of its own")
    for path, target in layout.links.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(_inside(target, trees, path))
    for path, content in layout.files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_symlink():
            raise CatalogError("refused", f"{path} is a file and a tree")
        place.write_bytes(content)


def _inside(target: Path, trees: tuple[Path, ...], path: str) -> Path:
    """Return the place of a link of the layout. No part of it below its tree may be a symbolic link."""
    try:
        resolved = target.resolve(strict=True)
    except OSError:
        raise CatalogError("invalid", f"there is no file for {path}", where=Where(file=path)) from None
    for tree in trees:
        # The directory with all trees may lie behind links of the system, such as /tmp on macOS.
        if target.is_relative_to(tree) and resolved == tree.resolve() / target.relative_to(tree):
            return resolved
    raise CatalogError(
        "refused",
        f"{path} is a symbolic link, or lies behind one",
        where=Where(file=path),
        remedy="Replace it by the file",
    )
