"""`kardinal lint`: check manifests without a cluster, before they are applied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click
from pydantic import ValidationError

from kardinal.catalog.kinds import CATALOG_CLUSTER, CATALOG_TENANT, CatalogCluster, CatalogTenant
from kardinal.cli.crd_rules import broken_rules
from kardinal.cli.errors import CommandError
from kardinal.cli.files import read_texts
from kardinal.cli.gate_warnings import warnings_of
from kardinal.cli.kinds import LintedKind, added_kinds
from kardinal.cli.manifests import Manifest, ManifestError, read_manifests
from kardinal.cli.output import say
from kardinal.extensions import ExtensionError, load_extensions
from kardinal.graph import GraphError, compile_graph
from kardinal.models.base import Resource
from kardinal.models.unknown_fields import unknown_fields
from kardinal.objects import GRAPH, JsonObject
from kardinal.objects.suggestions import nearest
from kardinal.objects.text import escaped
from kardinal.promotion.api import Bundle, Pipeline, PolicyGate
from kardinal.promotion.api.approval import Approval
from kardinal.promotion.api.graph import Graph
from kardinal.promotion.api.metric_check import MetricCheck
from kardinal.promotion.api.subscription import Subscription
from kardinal.promotion.kinds import (
    APPROVAL,
    BUNDLE,
    METRIC_CHECK,
    PIPELINE,
    POLICY_GATE,
    SUBSCRIPTION,
)
from kardinal.promotion.metrics.queries import query_fault
from kardinal.promotion.policy.calendar import zone_problem
from kardinal.promotion.policy.evaluate import fault
from kardinal.promotion.translation import Features
from kardinal.promotion.translation.translate import validate
from kardinal.promotion.translation.validation import bundle_problems, ignored_fields

__all__ = ["lint"]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One complaint about a manifest, with its place, such as `pipeline.yaml:12`, and its field.

    A warning is about a field that the API server accepts and that has no effect.
    """

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
    """A manifest with its resource, which is None if it does not match the model.

    `added` is the kind if another package has declared it.
    """

    manifest: Manifest
    place: str
    resource: Resource | None
    added: LintedKind | None


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
    findings = list[LintFinding]()
    checked = list[_Checked]()
    named = dict[tuple[str, ...], str]()
    for place, text in read_texts(paths):
        try:
            for manifest in read_manifests(text):
                added = added_kinds(manifest.kind[0].partition("/")[0])
                check = _check_of(manifest.kind, added)
                if check is not None:
                    found, resource = _check(manifest, place, check, features)
                    checked.append(_Checked(manifest, place, resource, added.get(manifest.kind)))
                    findings += [*found, *_named_before(manifest, place, named)]
                elif added:
                    findings.append(_unknown_kind(manifest, place, added))
        except ManifestError as error:
            findings.append(LintFinding(f"{place}:{error.line}", "not YAML", "", str(error)))
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


def _check_of(kind: tuple[str, str], added: Mapping[tuple[str, str], LintedKind]) -> _Check | None:
    """Return the checks of a kind, of this package or `added` by another; None if it is not checked."""
    other = added.get(kind)
    if other is None:
        return _CHECKS.get(kind)
    return _Check(other.model, lambda resource, _: other.problems(resource), other.misplaced)


def _unknown_kind(manifest: Manifest, place: str, added: Mapping[tuple[str, str], LintedKind]) -> LintFinding:
    """Return the error of a kind that a package's group does not have, such as a kind with a typing mistake."""
    version, kind = manifest.kind
    kinds = [known for _, known in added]
    near = kind if kind in kinds else nearest(kind, kinds)
    known = next((known for known in added if known[1] == near), None)
    remedy = f"did you mean {known[0]} {known[1]}?" if known else f"known are {', '.join(kinds)}"
    return _finding(manifest, place, "kind", f"there is no kind {kind or 'without a name'} in {version}; {remedy}")


def _check(
    manifest: Manifest, place: str, check: _Check, features: Features
) -> tuple[list[LintFinding], Resource | None]:
    """Return the errors of one manifest, and its resource, which is None if it does not match the model.

    The meaning, such as the order of environments, is checked only if the manifest matches the model.
    """
    found = list(check.misplaced(manifest.body))
    misplaced = [field for field, _ in found]
    found += [
        (unknown.field, f"unknown field; {unknown.remedy}")
        for unknown in unknown_fields(check.model, {"spec": manifest.body.get("spec")})
    ]
    found += broken_rules(check.model, manifest.body.get("spec"))
    resource = None
    try:
        resource = check.model.model_validate(manifest.body)
    except ValidationError as error:
        details = [(_path(detail["loc"]), str(detail["msg"])) for detail in error.errors(include_url=False)]
        found += [detail for detail in details if detail[0] not in misplaced]
    else:
        found += check.problems(resource, features)
    return [_finding(manifest, place, field, message) for field, message in found], resource


def _warnings(checked: Iterable[_Checked]) -> Iterator[LintFinding]:
    """Yield the warnings about all resources."""
    resources = [each.resource for each in checked]
    pipelines = [each for each in resources if isinstance(each, Pipeline)]
    for each in checked:
        if isinstance(each.resource, Pipeline):
            for field, message in ignored_fields(each.resource):
                yield _finding(each.manifest, each.place, field, message, is_warning=True)
        elif isinstance(each.resource, PolicyGate):
            for field, message in warnings_of(each.resource, pipelines):
                yield _finding(each.manifest, each.place, field, message, is_warning=True)
        elif each.resource is not None and each.added is not None:
            for field, message in each.added.warnings(each.resource):
                yield _finding(each.manifest, each.place, field, message, is_warning=True)
        elif each.manifest.kind in _STORED_ONLY:
            message = f"this version stores a {each.manifest.kind[1]} and does not act on it"
            yield _finding(each.manifest, each.place, "", message, is_warning=True)


def _finding(manifest: Manifest, place: str, field: str, message: str, *, is_warning: bool = False) -> LintFinding:
    subject = f"{manifest.kind[1]}/{manifest.name}" if manifest.name else manifest.kind[1]
    return LintFinding(f"{place}:{manifest.line(field)}", subject, field, message, is_warning)


def _named_before(manifest: Manifest, place: str, named: dict[tuple[str, ...], str]) -> Iterator[LintFinding]:
    """Yield an error if an earlier object has the same kind, namespace and name, and record the place of this one.

    `named` has the place of the first object of each name. `kubectl apply` would replace that object by the later one.
    """
    metadata = manifest.body.get("metadata")
    namespace = str(metadata.get("namespace", "")) if isinstance(metadata, dict) else ""
    key = (*manifest.kind, namespace, manifest.name)
    here = f"{place}:{manifest.line('metadata.name')}"
    if not manifest.name:
        return
    if key in named:
        message = f"{named[key]} has one of this name already, which this one would replace; give each its own"
        yield LintFinding(here, f"{manifest.kind[1]}/{manifest.name}", "metadata.name", message)
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
    if unknown := zone_problem(gate.spec.time_zone):
        yield "spec.timeZone", unknown.removeprefix("spec.timeZone: ")


def _graph(graph: Any, features: Features) -> Iterator[tuple[str, str]]:
    try:
        compile_graph({"nodes": list(graph.spec.nodes)})
    except GraphError as error:
        for problem in error.problems:
            yield problem.path, problem.message


def _metric_check(check: Any, features: Features) -> Iterator[tuple[str, str]]:
    if broken := query_fault(check.spec.query):
        yield "spec.query", broken


def _nothing(resource: Any, features: Features) -> Iterator[tuple[str, str]]:
    """Yield no errors: a resource of this kind is checked against its model only."""
    yield from ()


@dataclass(frozen=True, slots=True)
class _Check:
    """The checks of one kind: its model, and functions that yield (field, message) of each further error.

    `misplaced` looks at the document, for fields of which the model can say only that their type is wrong.
    """

    model: type[Resource]
    problems: Callable[[Any, Features], Iterable[tuple[str, str]]]
    misplaced: Callable[[JsonObject], Iterable[tuple[str, str]]] = lambda document: ()


_CHECKS: Final[Mapping[tuple[str, str], _Check]] = {
    (PIPELINE.api_version, PIPELINE.kind): _Check(Pipeline, _pipeline),
    (BUNDLE.api_version, BUNDLE.kind): _Check(Bundle, _bundle),
    (POLICY_GATE.api_version, POLICY_GATE.kind): _Check(PolicyGate, _gate),
    (APPROVAL.api_version, APPROVAL.kind): _Check(Approval, _nothing),
    (CATALOG_CLUSTER.api_version, CATALOG_CLUSTER.kind): _Check(CatalogCluster, _nothing),
    (CATALOG_TENANT.api_version, CATALOG_TENANT.kind): _Check(CatalogTenant, _nothing),
    (SUBSCRIPTION.api_version, SUBSCRIPTION.kind): _Check(Subscription, _nothing),
    (METRIC_CHECK.api_version, METRIC_CHECK.kind): _Check(MetricCheck, _metric_check),
    (GRAPH.api_version, GRAPH.kind): _Check(Graph, _graph),
}

_STORED_ONLY: Final = frozenset((resource.api_version, resource.kind) for resource in (SUBSCRIPTION,))
