"""Run `helm` and `kustomize` on copies of the files that take part.

They run behind the walls of the worker, which they inherit, with an empty environment. Their input is copied to a
directory that is removed afterwards, without symbolic links; so they see no other file, and their output has no path
of this machine.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.worker.files import Files, confined
from kardinal.catalog.worker.inputs import ComponentInput
from kardinal.catalog.worker.yaml_documents import load_documents
from kardinal.objects.text import cut

__all__ = ["PROGRAMS", "find_program", "helm_documents", "kustomize_documents", "wrapper_files"]

PROGRAMS: Mapping[str, str] = {"helm": "helm", "kustomize": "kustomize", "external": "kustomize"}
"""The program that an input of a type needs."""
_DEADLINE = 60.0
_SHOWN = 1_000
_OUTPUT_LIMIT = 64 << 20
_CHART = "chart"
_OUTPUT = "output"
_HELM_FLAGS = frozenset(
    (
        "api-versions",
        "create-namespace",
        "description",
        "disable-openapi-validation",
        "hide-notes",
        "include-crds",
        "is-upgrade",
        "kube-version",
        "namespace",
        "no-hooks",
        "release-name",
        "replace",
        "skip-crds",
        "skip-schema-validation",
        "skip-tests",
    )
)
"""Flags that read no file, start no program and ask no server."""
_COMPILED = "${compiled_target_dir}"
_KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_TAKEN_IN = (
    "bases",
    "components",
    "configurations",
    "crds",
    "generators",
    "resources",
    "transformers",
    "validators",
)
"""Fields of a kustomization whose items are files, directories, or places that kustomize would fetch from."""
_NAME = re.compile(r"[\w.-]+")
_DIGITS = re.compile(r"0\d+|\d{7,}")


class _ValuesDumper(yaml.SafeDumper):
    """Quotes digits that Go would read as another number, such as `0123456789`."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        return self.represent_scalar("tag:yaml.org,2002:str", text, style="'" if _DIGITS.fullmatch(text) else None)


_ValuesDumper.add_representer(str, _ValuesDumper.represent_text)


def find_program(entry: ComponentInput) -> None:
    """Raise `CatalogError` if the program is absent that an input needs."""
    program = PROGRAMS.get(entry.type)
    if program and shutil.which(program) is None:
        raise CatalogError(
            "render",
            f"the input of type {entry.type} needs {program}, which is not installed here",
            where=entry.where,
            remedy=f"Install {program} on the PATH, or use the agent's image, which has it",
        )


def helm_documents(entry: ComponentInput, path: str, files: Files) -> dict[str, list[Any]]:
    """Return the documents that a chart renders, by file, such as `nginx/templates/service.yaml`."""
    options = entry.options
    parameters = dict(options.get("helm_params", {}))
    name = parameters.pop("name", None)
    file = parameters.pop("output_file", None)
    if isinstance(parameters.get("release_name"), str):
        name = name or parameters.pop("release_name")
    if not isinstance(name, str):
        raise CatalogError(
            "invalid",
            "the input has no name of the release, and Helm would make up another one each time",
            remedy="Set helm_params.name",
        )
    flags: dict[str, Any] = {"include-crds": True, "skip-tests": True}
    if "kube_version" in options:
        flags["api-versions"] = options["kube_version"]
    flags |= {_helm_flag(flag): value for flag, value in parameters.items()}
    with _scratch() as scratch:
        _copy(files, path, scratch / _CHART)
        command = ["template", *_arguments(flags)]
        for index, content in enumerate(_values(options, files)):
            values = scratch / f"values-{index}.yaml"
            values.write_bytes(content)
            command += ["--values", str(values)]
        output = scratch / _OUTPUT
        output.mkdir()
        if file is None:
            command.append(f"--output-dir={output}")
        text = _run("helm", [*command, "--", name, str(scratch / _CHART)], scratch)
        if file is not None:
            return {confined(str(file)): _present(text, str(file))}
        return {name: _present(content.decode(), name) for name, content in _read(output)}


def kustomize_documents(entry: ComponentInput, path: str, files: Files) -> list[Any]:
    """Return the documents that a directory with a kustomization renders, with namespace and patches of the input."""
    options = entry.options
    if options.get("patches_json") or options.get("patches_strategic"):
        raise CatalogError(
            "invalid", "patches_json and patches_strategic have no effect in kapitan", remedy="Use patches"
        )
    if not files.is_directory(path):
        raise CatalogError("render", f"{path} is not a directory", remedy="Name the directory of the kustomization")
    with _scratch() as scratch:
        base = posixpath.basename(path)
        _copy(files, path, scratch / base)
        original = _kustomization(scratch / base)
        kustomization: dict[str, Any] = {
            "resources": [base],
            "namespace": options.get("namespace") or original.get("namespace", ""),
        }
        for name, patch in options.get("patches", {}).items():
            if not _NAME.fullmatch(str(name)) or not isinstance(patch, dict) or not {"patch", "target"} <= set(patch):
                raise CatalogError(
                    "invalid", f"the patch {cut(str(name), 100)!r} is not one", remedy="Write {patch: …, target: …}"
                )
            (scratch / f"{name}.yaml").write_text(json.dumps(patch["patch"]))
            kustomization.setdefault("patches", []).append({"path": f"{name}.yaml", "target": patch["target"]})
        (scratch / _KUSTOMIZATIONS[0]).write_text(json.dumps(kustomization))
        _check_bases(scratch)
        text = _run("kustomize", ["build", str(scratch)], scratch)
    return [document for document in _present(text, path) if document]


def wrapper_files(entry: ComponentInput, base: str, files: Files, directory: str) -> dict[str, bytes]:
    """Return the files that the wrapper of kustomize writes, by their path below `directory`, the input's output.

    Its first argument is the directory of its output, such as `${compiled_target_dir}/name`; `INPUT_DIR` in `env_vars`
    is the kustomization, below `base`, the component's own directory.
    """
    arguments = [str(argument) for argument in entry.options.get("args", [])]
    source = entry.options.get("env_vars", {}).get("INPUT_DIR")
    if not arguments or not isinstance(source, str):
        raise CatalogError(
            "invalid",
            "the wrapper of kustomize has no output or no INPUT_DIR",
            remedy="Write the output as the first of args, and the kustomization as INPUT_DIR in env_vars",
        )
    if unknown := [argument for argument in arguments[1:] if not argument.startswith("--reorder")]:
        raise CatalogError(
            "refused", f"the argument {cut(unknown[0], 100)!r} of kustomize is not allowed", remedy="Leave it out"
        )
    below = confined(arguments[0].replace(_COMPILED, "."))
    source = confined(source)
    if source != base and not source.startswith(f"{base}/"):
        raise CatalogError(
            "refused",
            f"INPUT_DIR {cut(source, 200)} is outside of the component",
            remedy="Begin it with ${_base_directory}",
        )
    with _scratch() as scratch:
        _copy(files, base, scratch / base)
        _check_bases(scratch / source)
        output = scratch / _OUTPUT
        output.mkdir()
        _run("kustomize", ["build", str(scratch / source), f"--output={output}", *arguments[1:]], scratch)
        found = {posixpath.join(directory, below, name): content for name, content in _read(output)}
    return {posixpath.relpath(path, directory): content for path, content in found.items()}


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="render-") as directory:
        yield Path(directory).resolve()


def _copy(files: Files, path: str, place: Path) -> None:
    """Copy a directory of the compilation to a place that does not exist."""
    if not files.is_directory(path):
        raise CatalogError("render", f"{path} is not a directory", remedy="Name a directory")
    place.mkdir(parents=True)
    size = 0
    for name in files.walk(path):
        content = files.read(posixpath.join(path, name))
        size += len(content)
        if size > _OUTPUT_LIMIT:
            raise CatalogError(
                "limit", f"{path} has more than {_OUTPUT_LIMIT >> 20} MiB", remedy="Name a smaller directory"
            )
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(content)


def _run(program: str, arguments: list[str], scratch: Path) -> str:
    """Return what a program prints. Raises `CatalogError` with its own words if it fails."""
    found = shutil.which(program) or program
    environment = {"HOME": str(scratch), "TMPDIR": str(scratch), "HELM_NO_PLUGINS": "1", "PATH": ""}
    try:
        ended = subprocess.run(  # noqa: S603 - arguments from a list of known flags
            [found, *arguments], cwd=scratch, env=environment, capture_output=True, timeout=_DEADLINE, check=False
        )
    except subprocess.TimeoutExpired:
        raise CatalogError(
            "limit", f"{program} took more than {_DEADLINE:.0f} seconds", remedy="Make the chart or overlay smaller"
        ) from None
    except OSError as error:
        raise CatalogError(
            "render", f"{program} cannot be started: {error.strerror}", remedy=f"Install {program} again"
        ) from None
    if ended.returncode:
        words = ended.stderr.decode(errors="replace").replace(f"{scratch}/", "").replace(str(scratch), ".").strip()
        raise CatalogError(
            "render", f"{program}: {cut(words, _SHOWN)}", remedy="Correct the chart, the overlay or their values"
        )
    if len(ended.stdout) > _OUTPUT_LIMIT:
        raise CatalogError("limit", f"{program} printed more than {_OUTPUT_LIMIT >> 20} MiB", remedy="Render less")
    return ended.stdout.decode(errors="replace")


def _helm_flag(name: str) -> str:
    flag = name.replace("_", "-")
    if flag not in _HELM_FLAGS or "-" in name:
        raise CatalogError(
            "refused",
            f"helm_params.{cut(name, 100)} is not allowed",
            remedy="Values belong to helm_values and helm_values_files; allowed are name, output_file and "
            + ", ".join(sorted(known.replace("-", "_") for known in _HELM_FLAGS)),
        )
    return flag


def _arguments(flags: Mapping[str, Any]) -> Iterator[str]:
    for flag, value in flags.items():
        if isinstance(value, bool):
            if value:
                yield f"--{flag}"
        else:
            yield f"--{flag}={value}"


def _values(options: Mapping[str, Any], files: Files) -> Iterator[bytes]:
    if options.get("helm_values"):
        yield yaml.dump(options["helm_values"], Dumper=_ValuesDumper).encode()
    for file in options.get("helm_values_files", []):
        try:
            yield files.read(str(file))
        except FileNotFoundError:
            raise CatalogError(
                "render", f"there is no file of values {cut(str(file), 200)}", remedy="Correct helm_values_files"
            ) from None


def _read(directory: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files that a program has written, sorted."""
    for path in sorted(directory.rglob("*")):
        if path.is_symlink():
            raise CatalogError("refused", f"{path.name} is a symbolic link", remedy="Write files alone")
        if path.is_file():
            yield path.relative_to(directory).as_posix(), path.read_bytes()


def _present(text: str, file: str) -> list[Any]:
    return [document for document in load_documents(text, file) if document is not None]


def _kustomization(directory: Path) -> Mapping[str, Any]:
    for name in _KUSTOMIZATIONS:
        if (directory / name).is_file():
            documents = _present((directory / name).read_text(errors="replace"), name)
            return documents[0] if documents and isinstance(documents[0], dict) else {}
    return {}


def _check_bases(directory: Path, seen: frozenset[Path] = frozenset()) -> None:
    """Raise `CatalogError` for what kustomize would fetch: an item that is no file of the component."""
    if directory in seen:
        return
    kustomization = _kustomization(directory)
    for field in _TAKEN_IN:
        items = kustomization.get(field)
        for item in items if isinstance(items, list) else []:
            if not isinstance(item, str) or "\n" in item:
                continue
            place = (directory / item).resolve()
            if not place.exists():
                raise CatalogError(
                    "refused",
                    f"{field} of a kustomization names {cut(item, 200)}, which is no file of the component",
                    remedy="Copy it into the component; kustomizations are not fetched from other repositories",
                )
            if place.is_dir():
                _check_bases(place, seen | {directory})
