"""Rendering one environment of one commit: by kustomize or kubectl where installed, else by the small reader."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import yaml

from kardinal.git import GitRunner, Repository
from kardinal.objects import JsonObject
from kardinal.steps.edit import Tree
from kardinal_local.simulator.kustomization import Rendered, RenderError, render

__all__ = ["BuiltInRenderer", "KustomizeRenderer", "Renderer", "find_renderer"]

DEADLINE = 30.0
"""Seconds a rendering program may take."""
EXPORT_LIMIT = 64 * 1024 * 1024
"""Bytes of a commit that are written out for a rendering program."""


class Renderer(Protocol):
    async def render(self, repository: Repository, commit: str, path: str) -> Rendered:
        """The objects of directory `path` in `commit`. Raises `RenderError`."""
        ...


class BuiltInRenderer:
    """Knows resources, namespace and images, and says what else it met."""

    async def render(self, repository: Repository, commit: str, path: str) -> Rendered:
        return await repository.inspect(commit, lambda tree: render(tree, path))


class KustomizeRenderer:
    """Runs a program that prints what a directory renders to, on a temporary copy of the commit."""

    def __init__(self, command: Sequence[str], *, runner: GitRunner) -> None:
        self._command = tuple(command)
        self._runner = runner

    async def render(self, repository: Repository, commit: str, path: str) -> Rendered:
        directory = Path(await self._runner.run(tempfile.mkdtemp, prefix="kardinal-render-"))
        try:
            await repository.inspect(commit, _exporter(directory))
            output = await self._run(directory / path, path)
            return Rendered(objects=await self._runner.run(_parse, output))
        finally:
            await self._runner.run(shutil.rmtree, directory)

    async def _run(self, directory: Path, path: str) -> bytes:
        process = await asyncio.create_subprocess_exec(
            *self._command, str(directory), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        try:
            async with asyncio.timeout(DEADLINE):
                output, errors = await process.communicate()
        except TimeoutError:
            raise RenderError(f"{path}: {self._command[0]} did not finish within {DEADLINE:.0f} s") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        if process.returncode:
            text = errors.decode(errors="replace").replace(str(directory), path).strip()
            raise RenderError(f"{path}: {text[:512]}")
        return output


async def find_renderer(runner: GitRunner) -> Renderer:
    """The best renderer this machine has."""
    if kustomize := await runner.run(shutil.which, "kustomize"):
        return KustomizeRenderer([kustomize, "build"], runner=runner)
    if kubectl := await runner.run(shutil.which, "kubectl"):
        return KustomizeRenderer([kubectl, "kustomize"], runner=runner)
    return BuiltInRenderer()


def _parse(output: bytes) -> list[JsonObject]:
    return [document for document in yaml.load_all(output, Loader=yaml.CSafeLoader) if document]


def _exporter(directory: Path) -> Callable[[Tree], None]:
    def export(tree: Tree) -> None:
        written = 0
        for path in _files(tree, ""):
            content = tree.read(path) or b""
            written += len(content)
            if written > EXPORT_LIMIT:
                raise RenderError(f"the commit is larger than {EXPORT_LIMIT} bytes")
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)

    return export


def _files(tree: Tree, directory: str) -> Iterator[str]:
    for name in tree.entries(directory):
        path = f"{directory}/{name}" if directory else name
        if tree.is_dir(path):
            yield from _files(tree, path)
        else:
            yield path
