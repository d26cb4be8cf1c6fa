"""Render the environments of one commit, by kustomize or kubectl if installed, else by the built-in reader.

Repositories hold files of others, and the simulator runs on a person's machine. So a rendering program gets none of the
environment variables, fetches nothing, and has limits on its memory, time and output. If the kernel supports the
isolation of `kardinal.processes.isolation`, it is applied as well, as for the renderers of the agent.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Protocol

from kardinal.cli.manifests import ManifestError, read_manifests
from kardinal.edits.kustomize.reading import read_kustomization
from kardinal.git import GitRunner, Repository
from kardinal.objects import JsonObject
from kardinal.objects.text import cut
from kardinal.processes.isolation import Walls, confine, find_walls
from kardinal.tree.edit import EditError, Tree
from kardinal_local.simulator.exports import Export, Exports
from kardinal_local.simulator.inputs import Inputs
from kardinal_local.simulator.kustomization import Rendered, RenderError, render

__all__ = ["BuiltInRenderer", "DirectoryRenderer", "KustomizeRenderer", "Rendering", "find_renderer"]

DEADLINE = 30.0
"""The deadline of a rendering program in seconds."""
MEMORY = 4 << 30
"""The maximum size of its virtual memory in bytes. Go reserves much more than it uses. Not enforced on macOS."""
OUTPUT_LIMIT = 16 << 20
_BOUNDED = f'ulimit -v {MEMORY >> 10} 2>/dev/null; ulimit -f {OUTPUT_LIMIT >> 9}; exec "$@"'
_NO_PROXY = "http://[::1]:9"
"""An address without a listener, which is set as the proxy so that all requests over HTTP fail."""
_TEXT_LIMIT = 800
"""The maximum length of an error message of a rendering program; the note of an Event has at most 1 KiB."""
_LOG_HEAD = re.compile(
    r"^(?:[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+ [^\s\]]+\] ?|\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)? )", re.MULTILINE
)
"""Matches the head of a log line of kubectl, `W1126 23:00:00.000000   12 file.go:3] `, or kustomize, with a date."""


class Rendering(Protocol):
    """Renders directories of one commit."""

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        """Return the rendered objects of the directory `path`. Raises `RenderError`.

        `inputs` are the files that the rendering reads; None if they are unknown.
        """
        ...


class DirectoryRenderer(Protocol):
    """Renders directories of commits to objects."""

    def at(self, repository: Repository, commit: str) -> AbstractAsyncContextManager[Rendering]:
        """Return a context manager with the `Rendering` of a commit; its files are deleted after the block."""
        ...


class BuiltInRenderer:
    """Renders by `kardinal_local.simulator.kustomization`, which supports three fields and reports the others."""

    @asynccontextmanager
    async def at(self, repository: Repository, commit: str) -> AsyncIterator[Rendering]:
        yield _BuiltIn(repository, commit)


class _BuiltIn:
    def __init__(self, repository: Repository, commit: str) -> None:
        self._repository = repository
        self._commit = commit

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        try:
            return await self._repository.inspect(self._commit, lambda tree: render(tree, path))
        except EditError as error:
            raise RenderError(str(error)) from error


class KustomizeRenderer:
    """Runs a program that prints the rendered objects of a directory, at most one at a time per core.

    `command` is for example `["/usr/bin/kustomize", "build"]`.
    """

    def __init__(self, command: Sequence[str], *, exports: Exports, runner: GitRunner, walls: Walls) -> None:
        self._command = tuple(command)
        self._exports = exports
        self._runner = runner
        self._walls = walls
        self._turns = asyncio.Semaphore(os.cpu_count() or 1)

    @asynccontextmanager
    async def at(self, repository: Repository, commit: str) -> AsyncIterator[Rendering]:
        async with self._exports.open(repository, commit) as export:
            yield _Kustomize(self, export, repository, commit)

    async def run(self, export: Export, path: str, inputs: Inputs | None) -> Rendered:
        """Return the rendered objects of one directory of an export. Raises `RenderError`."""
        async with self._turns:
            await export.fill(inputs)
            output = await self._run(export, path)
        return Rendered(objects=await self._runner.run(_parse, output))

    async def _run(self, export: Export, path: str) -> str:
        output = export.new_output()
        command = await self._runner.run(self._walled, export, path, output)
        process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            _BOUNDED,
            "sh",
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=_environment(export),
        )
        try:
            async with asyncio.timeout(DEADLINE):
                _, errors = await process.communicate()
        except TimeoutError:
            raise RenderError(f"{path}: {Path(self._command[0]).name} did not finish within {DEADLINE:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            raise RenderError(f"{path}: {_stable(errors.decode(errors='replace'), root=export.root)}")
        return await self._runner.run(_read, output, path)

    def _walled(self, export: Export, path: str, output: Path) -> list[str]:
        return confine(
            [*self._command, str(export.root / path)],
            programs=self._command[:1],
            home=export.home,
            output=output,
            network=False,
            walls=self._walls,
        )


class _Kustomize:
    def __init__(self, renderer: KustomizeRenderer, export: Export, repository: Repository, commit: str) -> None:
        self._renderer = renderer
        self._export = export
        self._repository = repository
        self._commit = commit

    async def render(self, path: str, inputs: Inputs | None) -> Rendered:
        try:
            await self._repository.inspect(self._commit, lambda tree: _check(tree, path))
        except EditError as error:
            raise RenderError(str(error)) from error
        return await self._renderer.run(self._export, path, inputs)


async def find_renderer(runner: GitRunner, directory: Path) -> DirectoryRenderer:
    """Return a renderer by kustomize, else by kubectl, else the built-in reader.

    `directory` is for temporary files; its present content is deleted.
    """
    # Error messages have the real path if the program resolves links, and `_stable` removes the path from them.
    exports = Exports(Path(await runner.run(os.path.realpath, directory)), runner=runner)
    await exports.sweep()
    walls = await runner.run(find_walls)
    if kustomize := await runner.run(shutil.which, "kustomize"):
        return KustomizeRenderer([kustomize, "build"], exports=exports, runner=runner, walls=walls)
    if kubectl := await runner.run(shutil.which, "kubectl"):
        return KustomizeRenderer([kubectl, "kustomize"], exports=exports, runner=runner, walls=walls)
    return BuiltInRenderer()


def _check(tree: Tree, path: str) -> None:
    """Raise `EditError` for a kustomization with a remote resource."""
    reading = read_kustomization(tree, path)
    if reading.remote:
        raise EditError(
            path,
            f"takes in {cut(reading.remote[0], 200)}, which is not in the repository",
            remedy="Copy it into the repository: the simulator fetches nothing",
        )


def _environment(export: Export) -> dict[str, str]:
    """Return the environment variables of a program.

    PATH and HOME are a directory without programs, there are no credentials, and the HTTP proxy refuses connections.
    """
    empty = str(export.scratch)
    proxies = dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), _NO_PROXY)
    return {"PATH": empty, "HOME": empty, "TMPDIR": empty, "KUBECONFIG": os.devnull, "LC_ALL": "C", **proxies}


def _read(output: Path, path: str) -> str:
    content = output.read_bytes()
    output.unlink()
    if len(content) >= OUTPUT_LIMIT:
        raise RenderError(f"{path}: renders more than {OUTPUT_LIMIT >> 20} MiB")
    return content.decode("utf-8", "replace")


def _stable(text: str, *, root: Path) -> str:
    """Return an error message of a program without times, process ids and the temporary path `root`.

    The same failure gives the same message, so that it is reported once.
    """
    text = _LOG_HEAD.sub("", text)
    text = text.replace(f"{root}/", "").replace(str(root), ".")
    return " ".join(text.split())[:_TEXT_LIMIT]


def _parse(output: str) -> list[JsonObject]:
    try:
        return [manifest.body for manifest in read_manifests(output) if manifest.body]
    except ManifestError as error:
        raise RenderError(f"what was rendered is not YAML (line {error.line}): {error}") from None
