"""Run `kustomize` and `helm` on files of a tree, in a child that can be killed and can read no secret.

The rendered files come from everyone who may write to the repository. The child gets only the files that take part, in
a directory of its own, without symbolic links. Its environment contains no credentials, no home directory and no
programs to start. Files in its options have names that we choose. Plugins are never enabled. Remote files that
kustomize would download are found, and refused, before it is started. In addition there are the walls of the kernel
(`kardinal.processes.isolation`): no sockets, and no files outside of its directory. Time, memory, files and output are
bounded.

Rendering runs on a thread. A child occupies one of few places until it ends; callers wait a few seconds for a place.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shutil
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from kardinal.edits.kustomize.reading import Reading, read_kustomization
from kardinal.objects.errors import KardinalError
from kardinal.objects.text import cut
from kardinal.processes.children import ChildLimits, Children, Ended
from kardinal.processes.errors import ChildDeadlineExceeded, ChildStopped, ShareExceeded
from kardinal.processes.isolation import Walls, confine, find_walls
from kardinal.processes.memory_shares import AVAILABLE, MemoryPool, children_memory
from kardinal.processes.threads import off_loop
from kardinal.rendering.renderer import RenderingUnavailable
from kardinal.tree.edit import EditError, Tree

__all__ = ["NOT_ISOLATED", "ProgramRenderer", "RendererOptions", "RenderingBusy", "environment_of", "renderer_memory"]

NOT_ISOLATED = (
    "Use Linux 5.13 or newer, and a container runtime that allows it, or start the agent without "
    "--require-renderer-isolation"
)
"""The remedy where isolation is required."""
_OF_A_RENDERER = 256 << 20
"""The most bytes of memory for one renderer, enough for a chart of many hundred objects.

If a quarter of the container's memory is less, one renderer runs at a time and gets that quarter.
"""
_RENDERERS = 4
_LARGEST = 1 << 30
_OUTPUT_LIMIT = 16 << 20
_MAX_FILES = 5_000
_MAX_BYTES = 48 << 20
_KEPT_RESULTS = 32
_KEPT_BYTES = 32 << 20
_SHOWN = 400
_CHART = "chart"
_VALUES = "values-{}.yaml"
_NO_MEMORY = re.compile(r"^(?>.*?(?:fatal error|panic): ).*(?:out of memory|cannot allocate memory)", re.M)
_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\[\]-]*")
_NAME = re.compile(r"[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?")


class RenderingBusy(KardinalError):
    """Every place for a renderer is occupied; another attempt may find a free one."""

    transient = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RendererOptions:
    """The permissions and bounds of rendering.

    `remote_bases`: kustomizations may fetch from any host that this process reaches. `helm_inflation`: kustomizations
    may run `helm` on charts. `require_isolation`: rendering is refused if a wall of the kernel is missing.
    """

    remote_bases: bool = False
    helm_inflation: bool = False
    require_isolation: bool = False
    deadline: float = 60.0
    """Seconds for one rendering. Defaults to 60."""
    patience: float = 5.0
    """Seconds to wait for a place. Defaults to 5."""
    memory: int = AVAILABLE
    """Bytes of memory of the container, of which renderers get a quarter. Defaults to the container's limit."""


def renderer_memory(available: int = AVAILABLE) -> tuple[int, int]:
    """Return the number of renderers that may run at once, and the bytes of memory for each."""
    part = children_memory(available)
    at_once = min(max(part // _OF_A_RENDERER, 1), _RENDERERS)
    return at_once, min(part // at_once, _LARGEST)


class ProgramRenderer:
    """A `Renderer` by the programs of this machine."""

    def __init__(self, options: RendererOptions) -> None:
        self._options = options
        at_once, self._memory = renderer_memory(options.memory)
        self._limits = ChildLimits(deadline=options.deadline, file=_OUTPUT_LIMIT)
        self._children = Children(MemoryPool(each=self._memory, total=at_once * self._memory))
        self._places = threading.BoundedSemaphore(at_once)
        self._results = _Results()

    def close(self) -> None:
        """Kill the running renderers, and refuse to start others."""
        self._children.close()

    @property
    def requires_isolation(self) -> bool:
        return self._options.require_isolation

    @off_loop
    def missing_walls(self) -> str:
        """Return a sentence about the walls that this machine lacks to isolate a renderer; empty if it lacks none."""
        return _not_isolated(find_walls())

    @off_loop
    def kustomize(self, tree: Tree, path: str, *, helm: bool, remote: bool) -> bytes:
        """Return the manifests of the kustomization in the directory `path`.

        `helm` and `remote`: whether this call asks for charts and remote bases; the options have to allow them, too.
        Raises `EditError`, `RenderingUnavailable` and, when no place is free, `RenderingBusy`.
        """
        reading = read_kustomization(tree, path)
        helm, remote = self._permitted(reading, path, helm=helm, remote=remote)
        command = _kustomize_command()
        programs = [command[0]]
        if helm:
            programs.append(_program("helm", path=path))
            command += ["--enable-helm", f"--helm-command={programs[-1]}"]
        files = _files_below(tree, reading.roots or (path,), path)
        with self._result(("kustomize", path), files, fresh=remote) as result:
            if result.content is None:
                result.content = self._run([*command, _Placed(path)], files, path, programs=programs, remote=remote)
            return result.content

    @off_loop
    def helm(
        self,
        tree: Tree,
        chart: str,
        *,
        release: str,
        namespace: str,
        values: Sequence[str],
        set_values: Mapping[str, str],
    ) -> bytes:
        """Return the manifests of the chart in the directory `chart`; later files of `values` win."""
        program = _program("helm", path=chart)
        for name, text in (("release", release), ("namespace", namespace)):
            if not _NAME.fullmatch(text):
                raise EditError(chart, f"{cut(text, 80)!r} cannot be the {name} of a chart")
        if wrong := [key for key in set_values if not _KEY.fullmatch(key)]:
            raise EditError(chart, f"{cut(wrong[0], 80)!r} is not the path of a value, such as image.tag")
        files, theirs = _chart_files(tree, chart, values)
        command: list[str | _Placed] = [program, "template", f"--namespace={namespace}"]
        for index in range(len(values)):
            command += ["--values", _Placed(_VALUES.format(index))]
        for key, text in set_values.items():
            command += ["--set-literal", f"{key}={text}"]
        command += ["--", release, _Placed(_CHART)]
        return self._run(command, files, chart, programs=[program], remote=False, theirs=theirs)

    def _permitted(self, reading: Reading, path: str, *, helm: bool, remote: bool) -> tuple[bool, bool]:
        """Return whether the kustomization needs charts and remote bases; raises `EditError` for a forbidden need.

        A kustomization that our reader could not read completely might need anything, so it is always refused.
        """
        if reading.closed:
            raise EditError(
                path,
                f"cannot be rendered, because it was not read whole: {reading.closed[0]}",
                remedy="Write it plainly: UTF-8, each key once, few aliases, no tags, one document in a kustomization",
            )
        if reading.remote and not (remote and self._options.remote_bases):
            raise EditError(
                path,
                f"takes in {cut(reading.remote[0], 200)}, which is not in the repository",
                remedy="Copy it into the repository, or start the agent with --allow-remote-bases",
            )
        if reading.helm and not (helm and self._options.helm_inflation):
            raise EditError(
                reading.helm[0] or ".",
                "inflates a Helm chart",
                remedy="Render the chart with helm-template, or start the agent with --allow-helm-inflation",
            )
        return bool(reading.helm), bool(reading.remote)

    def _run(
        self,
        command: Sequence[str | _Placed],
        files: Mapping[str, bytes],
        path: str,
        *,
        programs: Sequence[str],
        remote: bool,
        theirs: Mapping[str, str] | None = None,
    ) -> bytes:
        """Return the output of a program; `theirs` maps our names of files to paths of the tree, for its errors."""
        walls = find_walls()
        if walls.missing and self._options.require_isolation:
            raise RenderingUnavailable(path, f"cannot be rendered: {_not_isolated(walls)}", remedy=NOT_ISOLATED)
        if not self._places.acquire(timeout=self._options.patience):
            raise RenderingBusy("other kustomizations and charts are being rendered")
        try:
            with tempfile.TemporaryDirectory(prefix="kardinal-render-", ignore_cleanup_errors=True) as made:
                home = Path(made)
                root = home / "files"
                out = home / "out"
                _write(root, files)
                (home / "empty").mkdir()
                walled = confine(
                    [str(root / _normal(one.path)) if isinstance(one, _Placed) else one for one in command],
                    programs=programs,
                    home=home,
                    output=out,
                    network=remote,
                    walls=walls,
                )
                ended = self._child(walled, environment_of(home, self._memory, remote=remote), path)
                if ended.code != 0 and _NO_MEMORY.search(ended.text):
                    raise self._too_large(path)
                return _output(ended, out, home, path, theirs or {})
        finally:
            self._places.release()

    def _child(self, arguments: Sequence[str], environment: Mapping[str, str], path: str) -> Ended:
        try:
            return self._children.run(arguments, name=path, environment=environment, limits=self._limits)
        except ShareExceeded as exceeded:
            raise self._too_large(path) from exceeded
        except ChildDeadlineExceeded as exceeded:
            raise EditError(
                path,
                f"rendering takes longer than {self._options.deadline:.0f} s",
                remedy="Render less in one kustomization",
            ) from exceeded
        except ChildStopped as stopped:
            raise RenderingBusy("the program ends") from stopped

    def _too_large(self, path: str) -> EditError:
        return EditError(
            path,
            f"needs more than {self._memory >> 20} MiB of memory to be rendered",
            remedy="Render less at once, or raise the memory limit of the agent, of which a renderer gets a quarter",
        )

    @contextmanager
    def _result(self, kind: tuple[str, ...], files: Mapping[str, bytes], *, fresh: bool) -> Iterator[_Result]:
        """Yield the result of an earlier run on the same files, or an empty one to fill; a `fresh` one is not kept."""
        key = "" if fresh else _digest(kind, files)
        result = _Result(self._results.get(key))
        yield result
        if key and result.content is not None:
            self._results.put(key, result.content)


@dataclass(frozen=True, slots=True)
class _Placed:
    """An argument with the path of a file or directory that is written for the program."""

    path: str


@dataclass(slots=True)
class _Result:
    content: bytes | None


class _Results:
    """The last results, by a hash of the program, its options and its files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def get(self, key: str) -> bytes | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def put(self, key: str, content: bytes) -> None:
        with self._lock:
            self._kept[key] = content
            while len(self._kept) > _KEPT_RESULTS or sum(map(len, self._kept.values())) > _KEPT_BYTES:
                self._kept.popitem(last=False)


def environment_of(home: Path, memory: int, *, remote: bool) -> dict[str, str]:
    """Return the environment of a program in `home` that may use `memory` bytes; no variable of ours is in it."""
    environment = {
        "PATH": str(home / "empty"),
        "HOME": str(home / "empty"),
        "TMPDIR": str(home),
        "KUBECONFIG": "/dev/null",
        "LC_ALL": "C",
        "HELM_NO_PLUGINS": "1",
        # From this size on, a program in Go collects garbage instead of growing.
        "GOMEMLIMIT": f"{memory * 3 // 4}B",
        "GOTRACEBACK": "none",
    }
    if not remote:
        # No server listens on this address, so every request over http fails at once.
        return environment | dict.fromkeys(("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"), "http://[::1]:9")
    git = shutil.which("git")
    return environment | {
        "PATH": str(Path(git).parent) if git else environment["PATH"],
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_ALLOW_PROTOCOL": "https:ssh",
    }


def _not_isolated(walls: Walls) -> str:
    """Return a sentence about the missing walls; empty if there are none."""
    return f"renderers are not isolated: {walls.missing}" if walls.missing else ""


def _kustomize_command() -> list[str]:
    if found := shutil.which("kustomize"):
        return [found, "build"]
    if found := shutil.which("kubectl"):
        return [found, "kustomize"]
    raise RenderingUnavailable(
        "kustomize", "cannot be rendered: there is no kustomize", remedy="Install kustomize or kubectl on the agent"
    )


def _program(name: str, *, path: str) -> str:
    found = shutil.which(name)
    if found is None:
        message = f"cannot be rendered: there is no {name}"
        raise RenderingUnavailable(path, message, remedy=f"Install {name} on the agent")
    return found


def _chart_files(tree: Tree, chart: str, values: Sequence[str]) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the files of a chart and its values under names that we choose, and the paths that the names stand for.

    `helm` reads the argument of `--values` as a list separated by commas, so a name from the repository must not be in
    it.
    """
    directory = _normal(chart)
    names = {_CHART: directory}
    files = {
        f"{_CHART}/{path.removeprefix(directory).lstrip('/')}": content
        for path, content in _files_below(tree, (chart,), chart).items()
    }
    for index, path in enumerate(values):
        content = tree.read(path)
        if content is None:
            raise EditError(path, "no such file in the repository")
        name = _VALUES.format(index)
        files[name] = content
        names[name] = path
    return files, names


def _files_below(tree: Tree, directories: Sequence[str], path: str) -> dict[str, bytes]:
    """Return all files below `directories`; symbolic links are left out."""
    files: dict[str, bytes] = {}
    left = _MAX_BYTES
    pending = [_normal(directory) for directory in directories]
    seen: set[str] = set()
    while pending:
        directory = pending.pop()
        if directory in seen:
            continue
        seen.add(directory)
        for name in tree.entries(directory):
            below = posixpath.join(directory, name)
            try:
                size = tree.size(below)
            except EditError:  # a link
                continue
            if size is None:
                pending.append(below)
            elif below not in files:
                left -= size
                if left < 0 or len(files) >= _MAX_FILES:
                    raise EditError(
                        path,
                        f"needs more than {_MAX_FILES:,} files or {_MAX_BYTES >> 20} MiB to be rendered",
                        remedy="Keep what is not part of it in another directory",
                    )
                files[below] = tree.read(below) or b""
    return files


def _normal(path: str) -> str:
    return "/".join(segment for segment in path.split("/") if segment not in ("", "."))


def _write(root: Path, files: Mapping[str, bytes]) -> None:
    root.mkdir()
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def _output(ended: Ended, out: Path, home: Path, path: str, theirs: Mapping[str, str]) -> bytes:
    size = out.stat().st_size if out.exists() else 0
    if size >= _OUTPUT_LIMIT:
        raise EditError(path, f"renders more than {_OUTPUT_LIMIT >> 20} MiB", remedy="Render less at once")
    if ended.code != 0:
        said = ended.text
        for name, meant in theirs.items():
            said = said.replace(str(home / "files" / name), meant)
        said = " ".join(said.replace(str(home / "files"), "").replace(str(home), "").split())
        raise EditError(path, f"cannot be rendered: {_end(said) or f'the program ended with {ended.code}'}")
    return out.read_bytes()


def _end(text: str) -> str:
    shown = "".join(character for character in text if character.isprintable())
    return shown if len(shown) <= _SHOWN else f"…{shown[-_SHOWN:]}"


def _digest(kind: tuple[str, ...], files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for part in (*kind, *(part for path in sorted(files) for part in (path, files[path]))):
        content = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
