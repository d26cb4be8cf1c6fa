"""Make a Bundle of kardinal out of a template, and tell when another one is due.

A Bundle is a run, whatever the lifecycle of its template: it is created once and never updated. Its identity is its
type and its artifacts. Another commit that ends as the same image makes no Bundle, and neither does another author in
its provenance. Its name is computed from its identity and from the Bundle that was created before it:

    shop (v1) -> shop-1f0c…   shop (v2) -> shop-77ab…   shop (v1 again) -> shop-b20e…

So a controller that stopped before it could write its status finds the Bundle that it has created by its name, and a
version that comes back is promoted again.

A Bundle has no owner reference, and none is deleted: the deletion of a Workload ends no promotion. One that is gone is
not created again, because it might overtake a newer one.

This package may not import the kinds of promotion. A Bundle is a group, a kind and names of fields here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kardinal.objects import JsonObject
from kardinal.objects.applied import content_hash
from kardinal.objects.conditions import Truth
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.objects.naming import NAME_LIMIT, bounded
from kardinal_supplychain.api.kinds import DELIVERABLE, GROUP, WORKLOAD
from kardinal_supplychain.api.status import LastRun, RunOutcome
from kardinal_supplychain.problems import SupplyChainProblem
from kardinal_supplychain.realize.stamp import (
    ANNOTATION_INPUTS,
    ANNOTATION_STAMP,
    ResourcePlace,
    StampError,
    metadata_texts,
)

__all__ = [
    "LABEL_PIPELINE",
    "bundle_identity",
    "bundle_problems",
    "commit_of",
    "is_bundle",
    "is_same_bundle",
    "noted_bundle",
    "sharing_owners",
    "stamp_bundle",
]

LABEL_PIPELINE = "kardinal.io/pipeline"
"""The label of a Bundle that names its Pipeline."""

_BUNDLE_GROUP = "kardinal.io"
_BUNDLE_KIND = "Bundle"
_RESERVED_DOMAINS = (_BUNDLE_GROUP, "kro.run")

_SPEC_FIELDS = ("type", "artifacts", "provenance", "intent")
_IMAGE_FIELDS = ("name", "reference", "digest")
_CHART_FIELDS = ("repository", "name", "version", "digest")
_COMMIT_FIELDS = ("repository", "sha", "message", "path")
_PROVENANCE_FIELDS = ("commitSHA", "ciRunURL", "author", "buildTimestamp")
_METADATA_FIELDS = ("name", "generateName", "namespace", "labels", "annotations")
_UNKNOWN = "a Bundle of a template does not have this field"
_REFUSED_INTENT: Mapping[str, tuple[str, str]] = {
    "skip": ("a template lets no Bundle skip environments", "leave it out, and set `when` in the Pipeline"),
    "rollback": ("a template rolls nothing back", "leave it out; `kardinal rollback` does it"),
    "requests": ("a template makes no requests of persons", "leave it out; `kardinal promote` makes them"),
    "graph": ("a template writes no Graph by hand", "leave it out; the Pipeline says where the Bundle goes"),
}
"""The fields of `spec.intent` that a Bundle of a template may not have, and why."""

_REVISION = re.compile(
    r"(?:.*@sha1:(?P<flux>[0-9a-f]{40})|.+/(?P<old>[0-9a-f]{40}|[0-9a-f]{64})|(?P<id>[0-9a-f]{7,64}))"
)
_HASH_DIGITS = 10


def is_bundle(body: JsonObject) -> bool:
    """Return whether a template or a stamped object is a Bundle of kardinal, in whatever version."""
    group, _, _ = str(body.get("apiVersion", "")).partition("/")
    return group == _BUNDLE_GROUP and body.get("kind") == _BUNDLE_KIND


def bundle_identity(bundle: JsonObject) -> str:
    """Return the hash of type and artifacts. Another Bundle is due when it changes."""
    spec = bundle["spec"]
    return content_hash({"type": spec.get("type", "image"), "artifacts": _without_empty(spec.get("artifacts"))})


def bundle_problems(body: JsonObject) -> Iterator[SupplyChainProblem]:
    """Yield the fields that a Bundle of a template may not have, and those that it lacks.

    `body` is a template or what was rendered from it: only names of fields are looked at.
    """
    metadata = _map(body.get("metadata"))
    for field in sorted(metadata.keys() - set(_METADATA_FIELDS)):
        yield SupplyChainProblem(f"metadata.{field}", _UNKNOWN, "leave it out")
    labels = _map(metadata.get("labels"))
    if not labels.get(LABEL_PIPELINE):
        remedy = "set the label to the name of a Pipeline in the namespace of the owner"
        field = f"metadata.labels[{LABEL_PIPELINE}]"
        yield SupplyChainProblem(field, "the Bundle does not say which Pipeline it is for", remedy)
    reserved = [f"labels[{key}]" for key in sorted(labels.keys() - {LABEL_PIPELINE}) if _is_reserved(key)]
    reserved += [f"annotations[{key}]" for key in sorted(_map(metadata.get("annotations"))) if _is_reserved(key)]
    for field in reserved:
        remedy = "leave it out; a person can annotate the Bundle"
        yield SupplyChainProblem(f"metadata.{field}", "a template sets no mark of kardinal", remedy)
    for field in sorted(body.keys() - {"apiVersion", "kind", "metadata", "spec"}):
        yield SupplyChainProblem(field, _UNKNOWN, "leave it out")
    spec = body.get("spec")
    if not isinstance(spec, dict):
        yield SupplyChainProblem("spec", "the Bundle has no spec", "write spec.artifacts")
        return
    for place, value, known in _parts_of(spec):
        for field in sorted(_map(value).keys() - set(known)):
            yield SupplyChainProblem(f"{place}.{field}", _UNKNOWN, f"leave it out; there are {', '.join(known)}")
    for field in sorted(_map(spec.get("intent")).keys() - {"target"}):
        why, remedy = _REFUSED_INTENT.get(field, (_UNKNOWN, "leave it out"))
        yield SupplyChainProblem(f"spec.intent.{field}", why, remedy)


def _parts_of(spec: Mapping[str, Any]) -> Iterator[tuple[str, object, Sequence[str]]]:
    """Yield each part of a spec with its place and the fields that it may have.

    An API server drops other fields without a word, and then the Bundle would not be the one that was stamped.
    """
    artifacts = _map(spec.get("artifacts"))
    yield "spec", spec, _SPEC_FIELDS
    yield "spec.artifacts", artifacts, ("images", "charts", "gitCommit")
    for part, known in (("images", _IMAGE_FIELDS), ("charts", _CHART_FIELDS)):
        for index, each in enumerate(_list(artifacts.get(part))):
            yield f"spec.artifacts.{part}[{index}]", each, known
    yield "spec.artifacts.gitCommit", artifacts.get("gitCommit"), _COMMIT_FIELDS
    yield "spec.provenance", spec.get("provenance"), _PROVENANCE_FIELDS


def stamp_bundle(
    rendered: JsonObject, *, owner: JsonObject, place: ResourcePlace, inputs: JsonObject, last: LastRun | None
) -> JsonObject:
    """Return the Bundle of a resource. If it has the name of `last`, the Bundle before, nothing is to be created.

    Raises `StampError` for a Bundle that a template may not make.
    """
    spec = _checked_spec(rendered, owner)
    identity = bundle_identity({"spec": spec})
    metadata = rendered["metadata"]
    if last is not None and last.stamp == identity:
        name = last.name
    else:
        before = last.name if last is not None else ""
        origin = [owner["kind"], owner["metadata"]["name"], place.resource, identity, before]
        prefix = str(metadata.get("generateName") or metadata.get("name") or owner["metadata"]["name"])
        name = _computed_name(prefix, content_hash(origin)[:_HASH_DIGITS])
    marks = {ANNOTATION_STAMP: identity, ANNOTATION_INPUTS: content_hash(inputs)}
    return {
        "apiVersion": rendered["apiVersion"],
        "kind": rendered["kind"],
        "metadata": {
            "name": name,
            "namespace": owner["metadata"]["namespace"],
            "labels": {**metadata_texts(metadata, "labels"), **place.labels(owner)},
            "annotations": {**metadata_texts(metadata, "annotations"), **marks},
        },
        "spec": spec,
    }


def noted_bundle(live: JsonObject, stamped: JsonObject, last: LastRun | None, *, health: Truth) -> LastRun:
    """Return what the status of the owner keeps of a live Bundle, also when that is gone."""
    metadata = live["metadata"]
    sequence = last.sequence if last is not None else 0
    if last is None or last.uid != metadata["uid"]:
        sequence += 1
    outcomes: Mapping[Truth, RunOutcome] = {"True": "succeeded", "False": "failed", "Unknown": "unfinished"}
    return LastRun(
        name=metadata["name"],
        uid=metadata["uid"],
        stamp=stamped["metadata"]["annotations"][ANNOTATION_STAMP],
        sequence=sequence,
        outcome=outcomes[health],
    )


def is_same_bundle(live: JsonObject, wanted: JsonObject) -> bool:
    """Return whether the Bundle that has the computed name already is the one that was to be created.

    People may have moved its target and added requests meanwhile. It skips nothing and rolls nothing back.
    """
    specs = [bundle["spec"] for bundle in (live, wanted)]
    intent = _map(specs[0].get("intent"))
    return (
        bundle_identity(live) == bundle_identity(wanted)
        and _without_empty(specs[0].get("provenance")) == _without_empty(specs[1].get("provenance"))
        and _pipeline_of(live) == _pipeline_of(wanted)
        and not any(intent.get(field) for field in ("skip", "rollback", "graph"))
    )


def commit_of(revision: str) -> str | None:
    """Return the id of the commit in a revision of Flux, such as `main@sha1:HEX`, `main/HEX` or HEX; None without one.

    An artifact of an OCI registry (`latest@sha256:HEX`) has a digest, and no commit.
    """
    found = _REVISION.fullmatch(revision)
    return next((each for each in found.groups() if each), None) if found else None


def sharing_owners(
    bundle: JsonObject, *, owner: JsonObject, owners: Iterable[JsonObject], bundles: Iterable[JsonObject]
) -> list[str]:
    """Return the other owners in the namespace that create Bundles of this type for this Pipeline, as `Workload shop`.

    Their Bundles supersede each other, which is hardly meant. `owners` exist now, and `bundles` may be of others, too.
    """
    wanted = (_pipeline_of(bundle), bundle["spec"].get("type", "image"))
    itself = (owner["kind"], owner["metadata"]["name"])
    marks = {
        _owner_mark(each["kind"], each["metadata"]["name"]): f"{each['kind']} {each['metadata']['name']}"
        for each in owners
        if (each["kind"], each["metadata"]["name"]) != itself
        and each["metadata"]["namespace"] == owner["metadata"]["namespace"]
    }
    found = set()
    for each in bundles:
        if (_pipeline_of(each), _map(each.get("spec")).get("type", "image")) == wanted:
            labels = _map(each["metadata"].get("labels"))
            found |= {marks[mark] for mark in labels.items() if mark in marks}
    return sorted(found)


def _owner_mark(kind: str, name: str) -> tuple[str, str]:
    """Return the label of a stamped object that names its owner."""
    words = {WORKLOAD.kind: "workload", DELIVERABLE.kind: "deliverable"}
    return f"{GROUP}/{words[kind]}-name", bounded(name)


def _checked_spec(rendered: JsonObject, owner: JsonObject) -> dict[str, Any]:
    """Return the spec of a Bundle with its commits as ids. Raises `StampError`."""
    problem = next(bundle_problems(rendered), None)
    if problem is not None:
        raise StampError(
            f"{problem.field}: {problem.message}", remedy=f"{problem.remedy[0].upper()}{problem.remedy[1:]}"
        )
    metadata = _map(rendered.get("metadata"))
    if metadata.get("namespace") not in (None, "", owner["metadata"]["namespace"]):
        raise StampError("cannot set namespace in resource template")
    spec: dict[str, Any] = rendered["spec"]
    artifacts = spec.get("artifacts")
    if not isinstance(artifacts, dict) or not _without_empty(artifacts):
        raise StampError("spec.artifacts: nothing to promote", remedy="Write images, charts or gitCommit")
    for index, image in enumerate(_list(artifacts.get("images"))):
        _check_image(image, f"spec.artifacts.images[{index}]")
    commit = artifacts.get("gitCommit")
    if isinstance(commit, dict):
        artifacts = {**artifacts, "gitCommit": {**commit, "sha": _checked_commit(commit.get("sha"))}}
    provenance = spec.get("provenance")
    if isinstance(provenance, dict) and isinstance(provenance.get("commitSHA"), str):
        built_from = provenance["commitSHA"]
        provenance = {**provenance, "commitSHA": commit_of(built_from) or built_from}
    changed = {"artifacts": artifacts, "provenance": provenance}
    return spec | {field: value for field, value in changed.items() if field in spec}


def _check_image(image: object, field: str) -> None:
    reference = image.get("reference") if isinstance(image, dict) else None
    if not isinstance(reference, str):
        remedy = "Write reference: $(images.NAME.image)$, with the name of the input"
        raise StampError(f"{field}.reference: it is not a text", remedy=remedy)
    try:
        parsed = ImageReference.parse(reference)
    except ImageReferenceError as error:
        raise StampError(f"{field}.reference: {error.message}", remedy=error.remedy) from None
    if parsed.tag is None and parsed.digest is None and not _map(image).get("digest"):
        remedy = (
            "Let the resource that builds it put out the image with its digest, such as status.latestImage of kpack"
        )
        raise StampError(f"{field}.reference: {reference} has neither tag nor digest", remedy=remedy)


def _checked_commit(sha: object) -> str:
    found = commit_of(sha) if isinstance(sha, str) else None
    if found is None:
        remedy = "Write the revision of a source, such as $(sources.NAME.revision)$"
        raise StampError(f"spec.artifacts.gitCommit.sha: {sha!r:.120} has no id of a commit", remedy=remedy)
    return found


def _computed_name(prefix: str, digits: str) -> str:
    return f"{prefix[: NAME_LIMIT - len(digits) - 1].rstrip('-.')}-{digits}"


def _pipeline_of(bundle: JsonObject) -> object:
    return _map(bundle["metadata"].get("labels")).get(LABEL_PIPELINE)


def _is_reserved(key: str) -> bool:
    domain, slash, _ = key.rpartition("/")
    return bool(slash) and any(domain == each or domain.endswith(f".{each}") for each in _RESERVED_DOMAINS)


def _without_empty(value: object) -> object:
    """Return a value without the empty lists and maps that an API server may have added or dropped."""
    if isinstance(value, dict):
        kept = {key: _without_empty(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each not in ([], {}, None, "")}
    return [_without_empty(each) for each in value] if isinstance(value, list) else value


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()
