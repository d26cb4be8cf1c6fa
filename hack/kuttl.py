"""Run test directories of kuttl against a cluster, as far as they apply objects and assert objects.

    python -m hack.kuttl --kubeconfig FILE [--seconds 10] DIRECTORY...

A directory is one test, or holds such directories. Its files are the steps, in the order of the numbers before their
names: `00-templates.yaml` is applied in step 0, `01-assert.yaml` says what must be there after step 1, and
`01-errors.yaml` what must not. Each test has a namespace of its own; what it has applied is deleted when it ends. The
tests of Cartographer are run with it:

    python -m hack.kuttl --cases 0.7.0 --kubeconfig FILE

fetches that version of its public Go module, whose checksum Go compares with the public checksum database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kardinal.kube import Client, NotFound, load_connection
from kardinal.kube.discovery import discover
from kardinal.objects import NAMESPACE, JsonObject, ResourceType

__all__ = ["Case", "Step", "cases_of", "define", "kinds_of", "module"]

_MODULE = "github.com/vmware-tanzu/cartographer"
_MANAGER = "kuttl"
_FILE = re.compile(r"(\d+)-(.+)\.yaml")
_LOOK = 0.1
"""In seconds: the time between two looks at the objects of a step."""

Kinds = Mapping[tuple[str, str], ResourceType]
"""By group and version, and kind."""


@dataclass(slots=True)
class Step:
    """The objects to apply, those that must then be there, and those that must not."""

    number: int
    apply: list[JsonObject] = field(default_factory=list)
    expected: list[JsonObject] = field(default_factory=list)
    forbidden: list[JsonObject] = field(default_factory=list)


def steps_of(directory: Path) -> list[Step]:
    """Return the steps of a test."""
    steps: dict[int, Step] = {}
    for path in sorted(directory.glob("*.yaml")):
        named = _FILE.fullmatch(path.name)
        if named is None:
            continue
        number = int(named[1])
        step = steps.setdefault(number, Step(number))
        objects = {"assert": step.expected, "errors": step.forbidden}.get(named[2], step.apply)
        objects += [_json(document) for document in yaml.safe_load_all(path.read_text(encoding="utf-8")) if document]
    return [steps[number] for number in sorted(steps)]


def _json(value: object) -> Any:
    """Return a value of YAML as JSON, as kubectl does: the key `yes` is a boolean in YAML, and becomes `true`."""
    if isinstance(value, dict):
        return {key if isinstance(key, str) else json.dumps(key): _json(each) for key, each in value.items()}
    return [_json(each) for each in value] if isinstance(value, list) else value


def differences(expected: object, found: object, path: str = "") -> Iterator[str]:
    """Yield where `found` is not `expected`: a map may have more keys, a list must have the same elements."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key, value in expected.items():
            if key not in found:
                yield f"{path}.{key} is missing"
            else:
                yield from differences(value, found[key], f"{path}.{key}")
    elif isinstance(expected, list) and isinstance(found, list):
        if len(expected) != len(found):
            yield f"{path} has {len(found)} elements instead of {len(expected)}"
            return
        for index, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif expected != found:
        yield f"{path} is {found!r} instead of {expected!r}"


class Case:
    """One test directory in its namespace, which it creates."""

    def __init__(self, client: Client, kinds: Kinds, directory: Path, namespace: str) -> None:
        self._client = client
        self._kinds = kinds
        self._directory = directory
        self._namespace = namespace
        self._applied: list[tuple[ResourceType, str, str | None]] = []

    async def run(self, seconds: float) -> list[str]:
        """Return why the test failed; nothing if it passed."""
        metadata = {"name": self._namespace}
        await self._client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        try:
            for step in steps_of(self._directory):
                for obj in step.apply:
                    await self._apply(obj)
                problems = await self._wait(step, seconds)
                if problems:
                    return [f"step {step.number}: {problem}" for problem in problems]
            return []
        finally:
            await self._delete()

    async def _apply(self, obj: JsonObject) -> None:
        resource = self._resource(obj)
        namespace = obj["metadata"].get("namespace", self._namespace) if resource.namespaced else None
        placed = {**obj, "metadata": {**obj["metadata"], **({"namespace": namespace} if namespace else {})}}
        name = placed["metadata"]["name"]
        self._applied.append((resource, name, namespace))
        # As kuttl does: fields that a kind does not have are dropped, which server-side apply would refuse.
        try:
            await self._client.patch(resource, name, namespace, placed, field_manager=_MANAGER)
        except NotFound:
            await self._client.create(resource, placed, field_manager=_MANAGER)

    async def _wait(self, step: Step, seconds: float) -> list[str]:
        problems: list[str] = []
        try:
            async with asyncio.timeout(seconds):
                while problems := await self._problems(step):  # noqa: ASYNC110 - asks a server, as kuttl does
                    await asyncio.sleep(_LOOK)
        except TimeoutError:
            return problems
        return []

    async def _problems(self, step: Step) -> list[str]:
        problems = []
        for expected in step.expected:
            tried = [list(differences(expected, found)) for found in await self._candidates(expected)]
            if not any(not each for each in tried):
                closest = min(tried, key=len, default=["no object of this kind and name is there"])
                problems.append(f"{_name(expected)}: {'; '.join(closest)}")
        for forbidden in step.forbidden:
            candidates = await self._candidates(forbidden)
            if any(not list(differences(forbidden, found)) for found in candidates):
                problems += [f"{_name(forbidden)} must not be there"]
        return problems

    async def _candidates(self, wanted: JsonObject) -> Sequence[JsonObject]:
        """Return the objects that can be the wanted one: the one of its name, or all of its kind."""
        resource = self._resource(wanted)
        metadata = wanted.get("metadata") or {}
        namespace = metadata.get("namespace", self._namespace) if resource.namespaced else None
        if name := metadata.get("name"):
            try:
                return [await self._client.get(resource, name, namespace)]
            except NotFound:
                return []
        return (await self._client.list(resource, namespace)).items

    async def _delete(self) -> None:
        for resource, name, namespace in [*reversed(self._applied), (NAMESPACE, self._namespace, None)]:
            try:
                await self._client.delete(resource, name, namespace)
            except NotFound:
                continue

    def _resource(self, obj: JsonObject) -> ResourceType:
        return self._kinds[obj["apiVersion"], obj["kind"]]


def _name(obj: JsonObject) -> str:
    return f"{obj['kind']} {(obj.get('metadata') or {}).get('name', '')}".rstrip()


def cases_of(directories: Sequence[Path]) -> list[Path]:
    """Return the directories of single tests below `directories`."""
    found = {path.parent for directory in directories for path in directory.rglob("*.yaml")}
    return sorted(path for path in found if steps_of(path))


def module(version: str) -> Path:
    """Return the directory of Cartographer's public module; Go fetches it once."""
    command = ["go", "mod", "download", "-json", f"{_MODULE}@v{version}"]
    answer: dict[str, Any] = json.loads(subprocess.run(command, check=True, capture_output=True, timeout=300).stdout)
    return Path(answer["Dir"])


async def _run(directories: Sequence[Path], definitions: Sequence[Path], kubeconfig: Path, seconds: float) -> int:
    tests = cases_of(directories)
    failed = 0
    async with Client(await load_connection(kubeconfig), user_agent="kuttl") as client:
        await define(client, definitions)
        kinds = await kinds_of(client)
        for number, directory in enumerate(tests):
            name = f"{directory.parent.name}/{directory.name}"
            problems = await Case(client, kinds, directory, f"kuttl-{number}").run(seconds)
            failed += bool(problems)
            print(f"{'FAIL' if problems else 'PASS'} {name}", *problems, sep="\n     ", flush=True)
    print(f"{len(tests) - failed} of {len(tests)} passed")
    return 1 if failed else 0


async def kinds_of(client: Client) -> Kinds:
    """Return what the server serves."""
    return {(each.resource.api_version, each.resource.kind): each.resource for each in await discover(client)}


async def define(client: Client, files: Sequence[Path]) -> None:
    """Apply definitions of the objects that tests stamp, and wait until they are served."""
    definition = ResourceType(
        "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
    )
    names = []
    for path in files:
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if document:
                document.pop("status", None)
                applied = await client.apply(definition, document, field_manager=_MANAGER, force=True)
                names.append(applied["metadata"]["name"])
    async with asyncio.timeout(30):
        for name in names:
            while not _is_established(await client.get(definition, name)):  # noqa: ASYNC110 - asks a server
                await asyncio.sleep(_LOOK)


def _is_established(definition: JsonObject) -> bool:
    conditions = (definition.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m hack.kuttl", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directories", nargs="*", type=Path, help="directories of tests")
    parser.add_argument("--cases", metavar="VERSION", help="run the tests of this version of Cartographer")
    parser.add_argument("--kubeconfig", type=Path, required=True, help="the cluster")
    parser.add_argument("--seconds", type=float, default=10.0, help="the time for each step; default: 10")
    options = parser.parse_args()
    directories: list[Path] = options.directories
    definitions: list[Path] = []
    if options.cases:
        root = module(options.cases)
        directories = directories or [root / "tests" / "kuttl"]
        definitions = sorted((root / "tests" / "resources" / "crds").glob("*.yaml"))
    if not directories:
        parser.error("name a directory, or --cases VERSION")
    return asyncio.run(_run(directories, definitions, options.kubeconfig, options.seconds))


if __name__ == "__main__":
    sys.exit(main())
