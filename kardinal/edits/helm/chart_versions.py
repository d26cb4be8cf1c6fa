"""Set the version of a chart in every manifest that demands the chart.

A chart is demanded by the dependencies of another chart, by a HelmRelease or an OCIRepository of Flux, or by an
Application or ApplicationSet of Argo CD. The demand is for the promoted chart if it has the same name and, if the
manifest names a repository, the same repository.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import yaml

from kardinal.edits.yaml.document_path import DocumentPath, ListIndex, MappingKey, parse_path
from kardinal.edits.yaml.document_text import DocumentFile, FieldUpdate
from kardinal.edits.yaml.document_walk import find, text_of
from kardinal.edits.yaml.yaml_text import value_of

__all__ = ["Demand", "PromotedChart", "demands_of", "set_demands"]

_FLUX_CHART = parse_path("spec.chart.spec")
_ARGO_SPECS = {"Application": parse_path("spec"), "ApplicationSet": parse_path("spec.template.spec")}


@dataclass(frozen=True, slots=True)
class PromotedChart:
    """A chart of a Bundle. `repository` is the URL of an index, or `oci://` and the path above the chart."""

    name: str
    repository: str
    version: str
    digest: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """A chart that a document demands, and the path of its version."""

    document: int
    name: str
    repository: str | None
    """None if the document does not name the repository."""
    current: str | None
    version: DocumentPath
    digest: DocumentPath | None = None

    def is_for(self, chart: PromotedChart) -> bool:
        """Return whether the document demands `chart`, in any version."""
        if self.name != chart.name:
            return False
        return self.repository is None or _normalised(self.repository) == _normalised(chart.repository)

    def __str__(self) -> str:
        return f"{self.name} {self.current or 'of any version'}" + (f" of {self.repository}" if self.repository else "")


def demands_of(file: DocumentFile) -> Iterator[Demand]:
    """Yield the charts that the documents of a file demand."""
    for document, root in enumerate(file.roots):
        if not isinstance(root, yaml.MappingNode):
            continue
        kind, version = (text_of(value_of(root, key)) or "" for key in ("kind", "apiVersion"))
        if kind == "HelmRelease" and version.startswith("helm.toolkit.fluxcd.io/"):
            yield from _helm_release(root, document)
        elif kind == "OCIRepository" and version.startswith("source.toolkit.fluxcd.io/"):
            yield from _oci_repository(root, document)
        elif kind in _ARGO_SPECS and version.startswith("argoproj.io/"):
            yield from _application(root, document, _ARGO_SPECS[kind])
        elif not kind and version in ("v1", "v2"):
            yield from _dependencies(root, document)


def set_demands(file: DocumentFile, wanted: Sequence[tuple[Demand, PromotedChart]]) -> bytes:
    """Return the content of a file in which each demand has the version of its chart. Raises `DocumentError`."""
    updates = []
    for demand, chart in wanted:
        updates.append(FieldUpdate(path=demand.version, value=chart.version, document=demand.document, create=True))
        if demand.digest is not None:
            updates.append(FieldUpdate(path=demand.digest, value=chart.digest or "", document=demand.document))
    return file.edited(updates)


def _helm_release(root: yaml.Node, document: int) -> Iterator[Demand]:
    spec = find(root, _FLUX_CHART)
    # With a GitRepository or a Bucket the chart is a path, and its version is not set here.
    if _text(spec, "chart") and _text(find(spec, parse_path("sourceRef")), "kind") == "HelmRepository":
        yield Demand(
            document=document,
            name=_text(spec, "chart") or "",
            repository=None,
            current=_text(spec, "version"),
            version=_FLUX_CHART.child("version"),
        )


def _oci_repository(root: yaml.Node, document: int) -> Iterator[Demand]:
    url = _text(find(root, parse_path("spec")), "url") or ""
    reference = find(root, parse_path("spec.ref"))
    repository, _, name = url.rpartition("/")
    if reference is None or not name:
        return
    digest = parse_path("spec.ref.digest") if _text(reference, "digest") else None
    yield Demand(
        document=document,
        name=name,
        repository=repository,
        current=_text(reference, "tag") or _text(reference, "semver"),
        version=parse_path("spec.ref.semver" if _text(reference, "semver") else "spec.ref.tag"),
        digest=digest,
    )


def _application(root: yaml.Node, document: int, spec: DocumentPath) -> Iterator[Demand]:
    sources = [spec.child("source")]
    several = find(root, spec.child("sources"))
    if isinstance(several, yaml.SequenceNode):
        found = range(len(several.value))
        sources += [DocumentPath((*spec.child("sources").segments, ListIndex(position))) for position in found]
    for path in sources:
        source = find(root, path)
        name = _text(source, "chart")
        if name:
            yield Demand(
                document=document,
                name=name,
                repository=_text(source, "repoURL") or "",
                current=_text(source, "targetRevision"),
                version=path.child("targetRevision"),
            )


def _dependencies(root: yaml.Node, document: int) -> Iterator[Demand]:
    dependencies = find(root, parse_path("dependencies"))
    for position, item in enumerate(dependencies.value if isinstance(dependencies, yaml.SequenceNode) else ()):
        repository = _text(item, "repository") or ""
        if repository and not repository.startswith("file:"):
            yield Demand(
                document=document,
                name=_text(item, "name") or "",
                # Only the person who added a repository to Helm knows what its alias stands for.
                repository=None if repository.startswith(("@", "alias:")) else repository,
                current=_text(item, "version"),
                version=DocumentPath((MappingKey("dependencies"), ListIndex(position), MappingKey("version"))),
            )


def _text(node: yaml.Node | None, key: str) -> str | None:
    return text_of(value_of(node, key)) if isinstance(node, yaml.MappingNode) else None


def _normalised(repository: str) -> str:
    """Return the form in which repositories of charts are compared. Argo CD omits `oci://`, so it is removed."""
    address = repository.strip().removeprefix("oci://").removeprefix("https://").rstrip("/")
    host, slash, path = address.partition("/")
    return f"{host.lower()}{slash}{path}"
