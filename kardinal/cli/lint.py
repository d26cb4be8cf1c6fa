"""`kardinal lint`: what is wrong with manifests, before they are applied and without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from kardinal.api import BUNDLE, PIPELINE, POLICY_GATE, Bundle, Pipeline, PolicyGate
from kardinal.api.base import Resource
from kardinal.api.metric_check import METRIC_CHECK, MetricCheck
from kardinal.api.subscription import SUBSCRIPTION, Subscription
from kardinal.api.unknown_fields import unknown_fields
from kardinal.cli.crd_rules import broken_rules
from kardinal.cli.errors import CommandError
from kardinal.cli.files import files_below, read_file, read_input
from kardinal.cli.gate_warnings import warnings_of
from kardinal.cli.manifests import Manifest, ManifestError, read_manifests
from kardinal.cli.output import say
from kardinal.extensions import ExtensionError, load_extensions
from kardinal.objects.text import escaped
from kardinal.policy.evaluate import fault
from kardinal.translation import Features
from kardinal.translation.translate import validate
from kardinal.translation.validation import bundle_problems

__all__ = ["lint"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: where it stands, and what to do about it. A warning is about what is accepted and has no effect."""

    place: str
    subject: str
    field: str
    message: str
    is_warning: bool = False

    def __str__(self) -> str:
        kind = "warning: " if self.is_warning else ""
        return f"{self.place}: {kind}{self.subject} {self.field}: {self.message}".replace(" : ", ": ")


@dataclass(frozen=True, slots=True)
class _Checked:
    """A manifest with its resource; None where the shape is wrong."""

    manifest: Manifest
    place: str
    resource: Resource | None


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
    """Check the resources of kardinal in files as the controller would.

    Nothing is read from a cluster or a repository, so what only they can tell is not checked. Exits with 1 where
    something is wrong; a warning is about what is accepted and has no effect.
    """
    try:
        features = Features(registry=load_extensions().registry, allow_local_repositories=True)
    except ExtensionError as error:
        raise CommandError(str(error)) from None
    findings, checked, named = list[Finding](), list[_Checked](), dict[tuple[str, ...], str]()
    for place, text in _texts(paths):
        try:
            for manifest in read_manifests(text):
                if manifest.kind in _CHECKS:
                    found, resource = _check(manifest, place, features)
                    checked.append(_Checked(manifest, place, resource))
                    findings += [*found, *_named_before(manifest, place, named)]
        except ManifestError as error:
            findings.append(Finding(f"{place}:{error.line}", "not YAML", "", str(error)))
    warnings = list(_warnings(checked))
    for finding in (*findings, *warnings):
        say(escaped(str(finding)), err=True)
    if findings:
        raise click.exceptions.Exit(1)
    if not checked:
        raise CommandError(
            "there is no resource of kardinal in these files",
            remedy=f"A Pipeline has apiVersion: {PIPELINE.api_version} and kind: Pipeline.",
        )
    fine = f"{len(checked)} {'resource is' if len(checked) == 1 else 'resources are'} fine"
    told = f"{len(warnings)} warning{'s' if len(warnings) > 1 else ''}"
    say(f"{fine}, {told}" if warnings else fine)


def _texts(paths: tuple[Path, ...]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file; directories are searched for YAML and JSON."""
    for path in paths:
        if path == Path("-"):
            yield "standard input", read_input()
        else:
            for file in files_below(path) if path.is_dir() else [path]:
                yield str(file), read_file(file)


def _check(manifest: Manifest, place: str, features: Features) -> tuple[list[Finding], Resource | None]:
    """Return what is wrong with one object, and the object where its shape is right; its meaning is checked then."""
    check = _CHECKS[manifest.kind]
    found = [
        (unknown.field, f"unknown field; {unknown.remedy}")
        for unknown in unknown_fields(check.model, {"spec": manifest.body.get("spec")})
    ]
    found += broken_rules(check.model, manifest.body.get("spec"))
    resource = None
    try:
        resource = check.model.model_validate(manifest.body)
    except ValidationError as error:
        found += [(_path(detail["loc"]), str(detail["msg"])) for detail in error.errors(include_url=False)]
    else:
        found += check.problems(resource, features)
    return [_finding(manifest, place, field, message) for field, message in found], resource


def _warnings(checked: Iterable[_Checked]) -> Iterator[Finding]:
    """Yield what of the resources is accepted and has no effect."""
    resources = [each.resource for each in checked]
    pipelines = [each for each in resources if isinstance(each, Pipeline)]
    for each in checked:
        if isinstance(each.resource, PolicyGate):
            for field, message in warnings_of(each.resource, pipelines):
                yield _finding(each.manifest, each.place, field, message, is_warning=True)
        elif each.manifest.kind in _STORED_ONLY:
            message = f"this version stores a {each.manifest.kind[1]} and does not act on it"
            yield _finding(each.manifest, each.place, "", message, is_warning=True)


def _finding(manifest: Manifest, place: str, field: str, message: str, *, is_warning: bool = False) -> Finding:
    subject = f"{manifest.kind[1]}/{manifest.name}" if manifest.name else manifest.kind[1]
    return Finding(f"{place}:{manifest.line(field)}", subject, field, message, is_warning)


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


def _nothing(resource: Any, features: Features) -> Iterator[tuple[str, str]]:
    """Yield nothing: all that can be wrong with a resource of this kind is its shape."""
    yield from ()


@dataclass(frozen=True, slots=True)
class _Check:
    """How the objects of one kind are checked; problems are pairs of a field and a message."""

    model: type[Resource]
    problems: Callable[[Any, Features], Iterator[tuple[str, str]]]


_CHECKS: Final[Mapping[tuple[str, str], _Check]] = {
    (PIPELINE.api_version, PIPELINE.kind): _Check(Pipeline, _pipeline),
    (BUNDLE.api_version, BUNDLE.kind): _Check(Bundle, _bundle),
    (POLICY_GATE.api_version, POLICY_GATE.kind): _Check(PolicyGate, _gate),
    (SUBSCRIPTION.api_version, SUBSCRIPTION.kind): _Check(Subscription, _nothing),
    (METRIC_CHECK.api_version, METRIC_CHECK.kind): _Check(MetricCheck, _nothing),
}

_STORED_ONLY: Final = frozenset((resource.api_version, resource.kind) for resource in (SUBSCRIPTION, METRIC_CHECK))
