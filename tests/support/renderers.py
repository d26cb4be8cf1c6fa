"""Rendering in tests: the programs on PATH, what stands in for them, and files that they render."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from hack.renderers.assets import find
from kardinal.rendering.programs import ProgramRenderer
from kardinal.tree.edit import Tree
from tests.support.kubectl import kubectl_versions

__all__ = [
    "BASE",
    "CHART",
    "OVERLAY",
    "Rendered",
    "helm",
    "install",
    "kustomize",
    "listening",
    "needs",
    "program",
    "running",
]

_DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec: {template: {spec: {containers: [{name: web, image: "r/web:1"}]}}}
"""
BASE = {"base/kustomization.yaml": "resources: [web.yaml]\n", "base/web.yaml": _DEPLOYMENT}
OVERLAY = "resources: [../../base]\nimages: [{name: r/web, newTag: '2'}]\n"
CHART = {
    "charts/web/Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n",
    "charts/web/values.yaml": "image: {tag: '1'}\n",
    "charts/web/templates/web.yaml": (
        "apiVersion: x/v1\nkind: Thing\n"
        "metadata: {name: '{{ .Release.Name }}', namespace: '{{ .Release.Namespace }}'}\n"
        "spec: {image: 'r/web:{{ .Values.image.tag }}', note: {{ .Values.note | quote }}}\n"
    ),
}
Rendered = Callable[[dict[str, str], Callable[[Tree], bytes]], Awaitable[bytes]]
"""Commits files and renders them as an edit of that commit would."""


def install(directory: Path) -> None:
    """Link what there is of kustomize, helm and kubectl into a directory."""
    directory.mkdir()
    for name in ("kustomize", "helm", "kubectl"):
        path = find(name) if name != "kubectl" else next(reversed(kubectl_versions().values()), None)
        if path is not None:
            (directory / name).symlink_to(path)


def program(directory: Path, name: str, script: str, *, shell: str = "/bin/sh") -> Path:
    """Put a shell script in the place of a program; returns its path."""
    path = directory / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!{shell}\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def running(*command: str) -> list[int]:
    """Return the processes of this machine that were started with exactly these arguments, and have not ended."""
    wanted = b"".join(argument.encode() + b"\0" for argument in command)
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == wanted:
                found.append(int(path.parent.name))
    return found


def needs(directory: Path, *names: str) -> None:
    """Skip a test without these programs."""
    missing = [name for name in names if not (directory / name).exists()]
    if missing:
        pytest.skip(f"there is no {', '.join(missing)}: `make renderers` builds it")


def kustomize(renderer: ProgramRenderer, tree: Tree) -> bytes:
    return renderer.kustomize(tree, "envs/dev", helm=True, remote=True)


def helm(
    renderer: ProgramRenderer,
    tree: Tree,
    *,
    chart: str = "charts/web",
    release: str = "shop",
    namespace: str = "dev",
    values: Sequence[str] = (),
    **set_values: str,
) -> bytes:
    return renderer.helm(tree, chart, release=release, namespace=namespace, values=values, set_values=set_values)


@asynccontextmanager
async def listening() -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield a port where something listens, and the first lines of those who asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], asked
