"""`kardinal lint`: what is wrong with manifests, before they are applied and without a cluster."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE, Bundle, Pipeline, PolicyGate
from kardinal.api.base import Resource
from kardinal.api.unknown_fields import unknown_fields
from kardinal.cli.crd_rules import broken_rules
from kardinal.cli.errors import CommandError
from kardinal.cli.manifests import Manifest, ManifestError, read_manifests
from kardinal.extensions import ExtensionError, load_extensions
from kardinal.policy.evaluate import fault
from kardinal.translation import Features
from kardinal.translation.translate import validate
from kardinal.translation.validation import bundle_problems

__all__ = ["lint"]

_FILE_LIMIT = 16 << 20
"""Bytes of a file that is looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: where it stands, and what to do about it."""

    place: str
    subject: str
    field: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.subject} {self.field}: {self.message}".replace(" : ", ": ")


@click.command()
@click.option(
    "-f",
    "--file",
    "paths",
    type=click.Path(exists=True, path_type=Path, allow_dash=True),
    multiple=True,
    required=True,
    help="A file of manifests, a directory of such files, or - for standard input. May be repeated.",
)
def lint(paths: tuple[Path, ...]) -> None:
    """Check the Pipelines, Bundles and PolicyGates of files as the controller would.

    Nothing is read from a cluster or a repository, so what only they can tell is not checked. Exits with 1 where
    something is wrong.
    """
    try:
        features = Features(registry=load_extensions().registry, allow_local_repositories=True)
    except ExtensionError as error:
        raise CommandError(str(error)) from None
    findings, checked, named = list[Finding](), 0, dict[tuple[str, ...], str]()
    for place, text in _texts(paths):
        try:
            for manifest in read_manifests(text):
                if manifest.kind in _CHECKS:
                    checked += 1
                    findings += [*_check(manifest, place, features), *_named_before(manifest, place, named)]
        except ManifestError as error:
            findings.append(Finding(f"{place}:{error.line}", "not YAML", "", str(error)))
    for finding in findings:
        click.echo(str(finding), err=True)
    if findings:
        raise click.exceptions.Exit(1)
    if not checked:
        raise CommandError(
            "there is no Pipeline, Bundle or PolicyGate in these files",
            remedy=f"A Pipeline has apiVersion: {PIPELINE.api_version} and kind: Pipeline.",
        )
    click.echo(f"{checked} {'resource is' if checked == 1 else 'resources are'} fine")


def _texts(paths: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file; directories are searched for YAML and JSON."""
    for path in paths:
        if path == Path("-"):
            yield "standard input", sys.stdin.read(_FILE_LIMIT)
            continue
        found = [path]
        if path.is_dir():
            found = sorted(file for file in path.rglob("*") if file.suffix in (".yaml", ".yml", ".json"))
        for file in found:
            if file.stat().st_size > _FILE_LIMIT:
                raise CommandError(f"{file} has more than {_FILE_LIMIT:,} bytes", remedy="Split it.")
            try:
                yield str(file), file.read_text()
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(f"{file} cannot be read: {error}") from None


def _check(manifest: Manifest, place: str, features: Features) -> Iterator[Finding]:
    """Yield what is wrong with one object; its shape first, and its meaning only where the shape is right."""
    check = _CHECKS[manifest.kind]
    subject = f"{manifest.kind[1]}/{manifest.name}" if manifest.name else manifest.kind[1]

    def finding(field: str, message: str) -> Finding:
        return Finding(f"{place}:{manifest.line(field)}", subject, field, message)

    for unknown in unknown_fields(check.model, {"spec": manifest.body.get("spec")}):
        yield finding(unknown.field, f"unknown field; {unknown.remedy}")
    for field, message in broken_rules(check.model, manifest.body.get("spec")):
        yield finding(field, message)
    try:
        resource = check.model.model_validate(manifest.body)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            yield finding(_path(detail["loc"]), str(detail["msg"]))
        return
    for field, message in check.problems(resource, features):
        yield finding(field, message)


def _named_before(manifest: Manifest, place: str, named: dict[tuple[str, ...], str]) -> Iterator[Finding]:
    """Yield that an object has the name of one before it, which it would replace, and remember where it stands."""
    metadata = manifest.body.get("metadata")
    namespace = str(metadata.get("namespace", "")) if isinstance(metadata, dict) else ""
    key, here = (*manifest.kind, namespace, manifest.name), f"{place}:{manifest.line('metadata.name')}"
    if not manifest.name:
        return
    if key in named:
        message = f"{named[key]} has one of this name already, which this one would replace; give each its own"
        yield Finding(here, f"{manifest.kind[1]}/{manifest.name}", "metadata.name", message)
    named.setdefault(key, here)


def _path(location: tuple[int | str, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(".")


def _pipeline(pipeline: Any, features: Features) -> Iterator[tuple[str, str]]:
    for problem in validate(pipeline, features=features):
        yield problem.field, "; ".join(part for part in (problem.message, problem.remedy) if part)


def _bundle(bundle: Any, features: Features) -> Iterator[tuple[str, str]]:
    for problem in bundle_problems(bundle):
        yield problem.field, "; ".join(part for part in (problem.message, problem.remedy) if part)


def _gate(gate: Any, features: Features) -> Iterator[tuple[str, str]]:
    if broken := fault(gate.spec.expression):
        yield "spec.expression", broken


@dataclass(frozen=True, slots=True)
class _Check:
    """How the objects of one kind are checked; problems are pairs of a field and a message."""

    model: type[Resource]
    problems: Callable[[Any, Features], Iterator[tuple[str, str]]]


_CHECKS: Final[Mapping[tuple[str, str], _Check]] = {
    (PIPELINE.api_version, PIPELINE.kind): _Check(Pipeline, _pipeline),
    (BUNDLE.api_version, BUNDLE.kind): _Check(Bundle, _bundle),
    (POLICY_GATE.api_version, POLICY_GATE.kind): _Check(PolicyGate, _gate),
}
