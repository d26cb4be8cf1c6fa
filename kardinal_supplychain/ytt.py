"""Make the object of a ytt template: run `ytt` in a child that can be killed, behind the walls of the renderers.

    ytt -f - --data-values-file values.yml --output json

The template is its standard input, and the context of a stamping its data values, in a file that only this user can
read, in a directory of its own. Values are never arguments, which every process of the machine can read. The
environment has settings of the Go runtime and the locale alone. The walls (`kardinal.processes.isolation`) leave the
child no other file and no socket. Time, memory and output are bounded.

The output is JSON, which is decoded in C. It has no keys but texts, and ytt ends in a panic for the key `yes`, which is
a boolean in YAML. Such a template is rendered once more, as YAML, in which the keys are read as the texts that ytt
prints: `true`.

A program in Go that needs more memory than it may have ends by a signal or with an exit status that ytt does not
define. What it prints then is a trace of its stack, and is never quoted.

A child occupies one of few places until it ends. The namespaces take turns at them.
"""

from __future__ import annotations

import asyncio
import re
import shutil
import tempfile
from collections.abc import Hashable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import structlog
import yaml

from kardinal.bounded import ForeignBytes, mebibytes
from kardinal.bounded.documents import NotJson, OverLimit, decode_first
from kardinal.bounded.limits import JsonLimits
from kardinal.bounded.loader import BoundedLoader
from kardinal.objects import JsonObject
from kardinal.objects.text import cut, escaped
from kardinal.processes.children import BLOCK, ChildLimits, Children, Ended
from kardinal.processes.errors import ChildDeadlineExceeded, ChildStopped, ShareExceeded
from kardinal.processes.isolation import find_walls, plan_run
from kardinal.processes.launchers import Launchers
from kardinal.processes.memory_shares import AVAILABLE, MemoryPool, children_memory
from kardinal.processes.threads import off_loop
from kardinal.runtime.rotation import Rotation
from kardinal_supplychain.realize.interpolate import DEPTH_LIMIT, OBJECT_LIMIT, encoded_json
from kardinal_supplychain.realize.stamp import StampError

__all__ = ["INSTALL_YTT", "YTT_VERSION", "Ytt", "find_ytt"]

log = structlog.get_logger("kardinal.supplychain.ytt")

YTT_VERSION: Final = "v0.53.0"
"""The version that is tested, and that the image has."""
INSTALL_YTT: Final = f"Install it: go install carvel.dev/ytt/cmd/ytt@{YTT_VERSION}"

_DEADLINE: Final = 4.0
"""Seconds for one template."""
_TRIED_AGAIN_AFTER: Final = 300.0
"""Seconds until a template that took too long is rendered again, because the machine may have been busy."""
_OF_ONE: Final = 128 << 20
"""The most bytes of memory for one template.

If a quarter of the container's memory is less, one template is rendered at a time and gets that quarter.
"""
_AT_ONCE: Final = 4
_VALUES_LIMIT: Final = 4 << 20
_OUTPUT: Final = JsonLimits(size=OBJECT_LIMIT, depth=DEPTH_LIMIT)
_OUTPUT_WITH_KEYS: Final = 64 << 10
"""The most bytes of YAML, which takes a hundred times the time of JSON."""
_SHOWN: Final = 1_024
_TEMPLATE_FILE: Final = "template.yml"
_VALUES_FILE: Final = "values.yml"
_NOT_PLAIN: Final = re.compile(r"[^\x20-\x7e]")
_FAILED: Final = 1
"""The exit status of ytt for a template that is wrong. It defines no other but 0."""
_NOT_STARTED: Final = 125
"""The exit status of `kardinal.processes.confined` if it cannot start the program."""
_KEY_PANIC: Final = "panic: Expected key to be string"
_BACKTRACE: Final = " (backtrace: goroutine "
"""The beginning of what ytt prints of its stack for some errors; the addresses in it differ each time."""
_REFUSED: Final = "unable to apply ytt template: "

FOREIGN = ForeignBytes(
    "objects that `ytt` makes of templates",
    of="tenant",
    size=f"{mebibytes(OBJECT_LIMIT)}; {mebibytes(_VALUES_LIMIT)} of values are given to it",
    unpacked="not compressed",
    structure=_OUTPUT.structure,
    time=f"{_DEADLINE:.0f} s",
    held=f"one for each place, at most {_AT_ONCE}",
    decoded="made in a child, decoded on a thread",
    tests=("supplychain/test_ytt_attacks.py",),
)


def find_ytt(program: Path | None = None) -> Path | None:
    """Return the program: `program` if it is given, else that on PATH; None if it is not there."""
    found = shutil.which(program or "ytt")
    return Path(found).absolute() if found else None


@dataclass(slots=True, eq=False)
class _Waiting:
    """A rendering that waits for a place."""

    namespace: str
    turn: asyncio.Future[None]


class Ytt:
    """Renders templates with the program `program`, which defaults to `ytt` on PATH.

    `memory`: bytes of the container, of which all children together get a quarter. Defaults to the container's limit.
    Belongs to one event loop, except `rendered` and `close`.
    """

    def __init__(self, program: Path | None = None, *, memory: int = AVAILABLE) -> None:
        part = children_memory(memory)
        at_once = min(max(part // _OF_ONE, 1), _AT_ONCE)
        self._program = program
        self._memory = min(part, _OF_ONE)
        self._children = Children(MemoryPool(each=self._memory, total=at_once * self._memory))
        # From GOMEMLIMIT on, a program in Go collects garbage instead of growing. Without LC_ALL, Python sets LC_CTYPE.
        environment = {"GOMEMLIMIT": f"{self._memory * 3 // 4}B", "GOTRACEBACK": "none", "LC_ALL": "C"}
        limits = ChildLimits(deadline=_DEADLINE, file=OBJECT_LIMIT + BLOCK)
        self._launchers = Launchers(self._children, name="ytt", environment=environment, limits=limits)
        self._threads = ThreadPoolExecutor(at_once, thread_name_prefix="ytt")
        self._free = at_once
        self._waiting: Rotation[_Waiting] = Rotation()

    async def start(self) -> None:
        """Log the walls that this machine lacks."""
        if missing := (await asyncio.to_thread(find_walls)).missing:
            log.warning("ytt is not isolated", missing=missing)

    async def stop(self) -> None:
        """Do the same as `close`."""
        await asyncio.to_thread(self.close)

    async def render(self, template: str, values: JsonObject, *, namespace: str) -> JsonObject:
        """Return the first document that a template makes of `values`, for an owner in `namespace`.

        Raises `StampError`; it is transient if another attempt may succeed.
        """
        await self._take_place(namespace)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, self.rendered, template, values)
        finally:
            # If the caller is cancelled, the thread goes on until the child ends, and the next one waits for it there.
            self._give_place_back()

    @off_loop
    def rendered(self, template: str, values: JsonObject) -> JsonObject:
        """Return the same as `render`, and block until the child ends."""
        try:
            encoded = _NOT_PLAIN.sub(_escape, encoded_json(values).decode())
        except ValueError as error:
            raise StampError(f"{_REFUSED}the values are not JSON: {error}") from None
        if len(encoded) > _VALUES_LIMIT:
            raise StampError(
                f"{_REFUSED}its values have {len(encoded):,} bytes, and at most {_VALUES_LIMIT:,} are allowed"
            )
        try:
            return _first_object(self._run(template, encoded, output="json"))
        except _KeyIsNoText:
            return _first_object_of_yaml(self._run(template, encoded, output="yaml"))

    def close(self) -> None:
        """Kill the running children, and start no others."""
        self._children.close()
        self._launchers.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _run(self, template: str, values: str, *, output: Literal["json", "yaml"]) -> bytes:
        program = find_ytt(self._program)
        if program is None:
            named = f"there is no program {self._program}" if self._program else "it is not on PATH"
            raise StampError(f"ytt is not installed: {named}", remedy=INSTALL_YTT, transient=True)
        with _directory() as home:
            _write(home / _TEMPLATE_FILE, template)
            _write(home / _VALUES_FILE, values)
            printed = home / "output"
            command = [str(program), "-f", "-", "--data-values-file", _VALUES_FILE, "--output", output]
            plan = plan_run(
                command,
                programs=[str(program)],
                home=home,
                output=printed,
                network=False,
                walls=find_walls(),
                input=home / _TEMPLATE_FILE,
            )
            ended = self._child(plan)
            size = printed.stat().st_size if printed.exists() else 0
            if size > OBJECT_LIMIT:
                raise StampError(f"{_REFUSED}it makes more than {mebibytes(OBJECT_LIMIT)}")
            self._check(ended)
            return printed.read_bytes()

    def _child(self, plan: list[str]) -> Ended:
        try:
            return self._launchers.run(plan)
        except ShareExceeded as exceeded:
            raise self._too_large(transient=exceeded.transient) from None
        except ChildDeadlineExceeded:
            late = StampError(f"{_REFUSED}it takes longer than {_DEADLINE:.0f} s", transient=True)
            late.retry_after = _TRIED_AGAIN_AFTER
            raise late from None
        except ChildStopped:
            raise StampError(f"{_REFUSED}the program ends", transient=True) from None

    def _check(self, ended: Ended) -> None:
        """Raise `StampError` unless ytt has succeeded."""
        if ended.code == 0:
            return
        if ended.code in (_FAILED, _NOT_STARTED):
            said = escaped(ended.text.partition(_BACKTRACE)[0], kept="\n")
            raise StampError(_REFUSED + (cut(said, _SHOWN) or f"ytt ended with {ended.code}"))
        if _KEY_PANIC in ended.text:
            raise _KeyIsNoText
        raise self._too_large()

    def _too_large(self, *, transient: bool = False) -> StampError:
        return StampError(
            f"{_REFUSED}ytt crashed, or needs more than {mebibytes(self._memory)} of memory", transient=transient
        )

    async def _take_place(self, namespace: str) -> None:
        if self._free:
            self._free -= 1
            return
        waiting = _Waiting(namespace, asyncio.get_running_loop().create_future())
        self._waiting.put(waiting)
        try:
            await waiting.turn
        except asyncio.CancelledError:
            self._waiting.remove(waiting)
            if not waiting.turn.cancelled():
                self._give_place_back()
            raise

    def _give_place_back(self) -> None:
        """Give the place to the next namespace in turn."""
        while (waiting := self._waiting.first()) is not None:
            self._waiting.end_turn(waiting.namespace)
            self._waiting.remove(waiting)
            if not waiting.turn.cancelled():
                waiting.turn.set_result(None)
                return
        self._free += 1


@contextmanager
def _directory() -> Iterator[Path]:
    """Yield a directory that this user alone can enter, for the files of one run."""
    with tempfile.TemporaryDirectory(prefix="kardinal-ytt-", ignore_cleanup_errors=True) as made:
        yield Path(made)


def _write(path: Path, text: str) -> None:
    path.touch(mode=0o600)
    path.write_text(text, errors="surrogatepass")


def _escape(found: re.Match[str]) -> str:
    """Return a character as YAML escapes it in quotes: JSON may have it bare, or as two halves."""
    return f"\\U{ord(found[0]):08x}"


class _KeyIsNoText(Exception):
    """A key of the output is not a text, so that it cannot be printed as JSON."""


class _PrintedYaml(BoundedLoader):
    """Reads YAML as ytt prints it: a text that looks like anything else is in quotes there."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        if not isinstance(node, yaml.MappingNode) or not all(isinstance(key, yaml.ScalarNode) for key, _ in node.value):
            raise yaml.constructor.ConstructorError(None, None, "a key that is a list or a map", node.start_mark)
        return {key.value: self.construct_object(value, deep=deep) for key, value in node.value}


# None of PyYAML's: for it `on` is a boolean, and `1e+06` a text.
_PrintedYaml.yaml_implicit_resolvers = {}
_PrintedYaml.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"null\Z"), ["n"])
_PrintedYaml.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(true|false)\Z"), ["t", "f"])
_PrintedYaml.add_implicit_resolver("tag:yaml.org,2002:int", re.compile(r"-?[0-9]+\Z"), list("-0123456789"))
_PrintedYaml.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?\Z"), list("-0123456789")
)


def _first_object_of_yaml(content: bytes) -> JsonObject:
    if len(content) > _OUTPUT_WITH_KEYS:
        raise StampError(
            f"{_REFUSED}it makes more than {_OUTPUT_WITH_KEYS:,} bytes with a key that is not a text",
            remedy="Write the key in quotes",
        )
    try:
        _check_events(content)
        document = next((each for each in yaml.load_all(content, _PrintedYaml) if each is not None), None)
    except yaml.YAMLError:
        raise StampError(f"{_REFUSED}ytt printed no YAML", remedy=f"Use ytt {YTT_VERSION}") from None
    return _object(document)


def _check_events(content: bytes) -> None:
    """Raise `StampError` if a document has aliases or is nested too deeply."""
    depth = 0
    for event in yaml.parse(content, yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_LIMIT or isinstance(event, yaml.AliasEvent):
            raise StampError(f"{_REFUSED}what it makes is nested deeper than {DEPTH_LIMIT} levels, or has aliases")


def _first_object(content: bytes) -> JsonObject:
    if not content.strip():
        raise StampError(f"{_REFUSED}it makes no document", remedy="Write one object, which no condition leaves out")
    try:
        document = decode_first(content, _OUTPUT)
    except OverLimit as error:
        raise StampError(f"{_REFUSED}of what it makes, {error}") from None
    except NotJson:
        raise StampError(f"{_REFUSED}ytt printed no JSON", remedy=f"Use ytt {YTT_VERSION}") from None
    return _object(document)


def _object(document: object) -> JsonObject:
    if not isinstance(document, dict):
        kind = "a list" if isinstance(document, list) else "one value"
        raise StampError(f"{_REFUSED}its first document is {kind}, and an object is needed")
    return document
