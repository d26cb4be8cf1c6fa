"""Validate the spec of a CustomResourceDefinition, and of a change to one.

A definition that could not be served in full (a schema that is not structural, a path that leads nowhere, a rule that
does not compile) is refused when it is applied, naming the field; it is never stored and then half obeyed. Parts that
all versions have in common are judged once and named as the server keeps them, at the top of the spec. Names, group and
scope are part of where objects are stored and do not change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from kardinal_local.plane import schemas
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause
from kardinal_local.plane.kinds.approval import approval_causes
from kardinal_local.plane.kinds.subresources import column_causes, scale_causes, selectable_causes
from kardinal_local.plane.schemas.causes import forbidden, invalid, not_supported, required
from kardinal_local.plane.schemas.internal import internal_versions
from kardinal_local.plane.schemas.names import label_1035_problems, subdomain_problems

__all__ = ["problems"]

_SCOPES: Final = ("Cluster", "Namespaced")
_STRATEGIES: Final = ("None", "Webhook")
_MIXED_CASE: Final = "may have mixed case, but should otherwise match: "
_WITHOUT_SCHEMA: Final = {
    True: "may only be set when validations.schema is included",
    False: "may only be set when `version.schema.openAPIV3Schema` is not included",
}
"""Fields that all versions share need a schema they share, and the other way round."""
_HOISTED: Final = {
    "schema": "validation",
    "subresources": "subresources",
    "additionalPrinterColumns": "additionalPrinterColumns",
    "selectableFields": "selectableFields",
}
"""Parts of a version, and what the spec calls them when all versions have the same."""


def problems(document: JsonObject, *, old: JsonObject | None) -> list[Cause]:
    """Everything that is wrong with a definition."""
    spec: JsonObject = document.get("spec") or {}
    status: JsonObject = document.get("status") or {}
    found = [] if old is not None else list(_name(document, spec))
    found += _spec(spec)
    if old is not None:
        found += _immutable(spec, old)
    found += _names(status.get("acceptedNames") or {}, "status.acceptedNames")
    found += _stored_versions(status.get("storedVersions"), spec.get("versions") or [])
    found += approval_causes(document, old)
    if spec.get("preserveUnknownFields"):
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        )
        found.append(invalid("spec.preserveUnknownFields", True, words))
    return found


def _name(document: JsonObject, spec: JsonObject) -> Iterator[Cause]:
    name = document["metadata"].get("name") or ""
    if name and name != f"{(spec.get('names') or {}).get('plural') or ''}.{spec.get('group') or ''}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec(spec: JsonObject) -> Iterator[Cause]:
    group, names = spec.get("group") or "", spec.get("names") or {}
    versions: list[JsonObject] = spec.get("versions") or []
    if not group:
        yield required("spec.group")
    elif problems := subdomain_problems(group):
        yield invalid("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")
    yield from _choice("spec.scope", spec.get("scope") or "", _SCOPES)
    common = {part for part in _HOISTED if _same_everywhere(versions, part)}
    for index, version in enumerate(versions):
        if not (version.get("schema") or {}).get("openAPIV3Schema"):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        yield from _version(version, index, common)
    yield from _version_list(spec, versions, common)
    for name in ("plural", "singular", "kind", "listKind"):
        if not names.get(name):
            yield required(f"spec.names.{name}")
    yield from _names(names, "spec.names")
    if versions:
        yield from _parts(versions, versions[0], "spec", common)
    yield from _conversion(spec.get("conversion"))


def _choice(field: str, value: str, accepted: tuple[str, ...]) -> Iterator[Cause]:
    if not value:
        yield required(field)
    elif value not in accepted:
        yield not_supported(field, value, accepted)


def _same_everywhere(versions: list[JsonObject], part: str) -> bool:
    return all((version.get(part) or None) == (versions[0].get(part) or None) for version in versions)


def _version(version: JsonObject, index: int, common: set[str]) -> Iterator[Cause]:
    at = f"spec.versions[{index}]"
    name = version.get("name") or ""
    if problems := label_1035_problems(name):
        yield invalid(f"{at}.name", name, ",".join(problems))
    warning = version.get("deprecationWarning")
    if warning is not None:
        for problem in _deprecation_problems(warning, deprecated=bool(version.get("deprecated"))):
            yield invalid(f"{at}.deprecationWarning", warning, problem)
    yield from _parts([version], version, at, _HOISTED.keys() - common, names={part: part for part in _HOISTED})


def _deprecation_problems(warning: str, *, deprecated: bool) -> Iterator[str]:
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    hidden = next((index for index, char in enumerate(warning) if not char.isprintable()), None)
    if hidden is not None:
        offset = len(warning[:hidden].encode())
        yield f"must only contain printable UTF-8 characters; non-printable character found at index {offset}"


def _parts(
    versions: list[JsonObject], one: JsonObject, at: str, parts: set[str], *, names: dict[str, str] = _HOISTED
) -> Iterator[Cause]:
    """The judged parts of a version, or of the spec when its versions have them in common."""
    schema = (one.get("schema") or {}).get("openAPIV3Schema")
    if "schema" in parts and schema is not None:
        status = any("status" in (version.get("subresources") or {}) for version in versions)
        yield from schemas.schema_causes(schema, f"{at}.{names['schema']}.openAPIV3Schema", status=status)
    if "subresources" in parts:
        yield from scale_causes((one.get("subresources") or {}).get("scale"), f"{at}.subresources.scale")
    if "additionalPrinterColumns" in parts:
        yield from column_causes(one.get("additionalPrinterColumns") or [], f"{at}.additionalPrinterColumns")
    if "selectableFields" in parts and one.get("selectableFields"):
        place = f"{at}.selectableFields"
        if "schema" in parts:
            yield from selectable_causes(one["selectableFields"], schema, place)
        else:
            yield invalid(place, "", _WITHOUT_SCHEMA[at == "spec"])


def _version_list(spec: JsonObject, versions: list[JsonObject], common: set[str]) -> Iterator[Cause]:
    kept = [{key: value for key, value in version.items() if key not in common} for version in versions]
    shown = internal_versions(kept) if spec.get("versions") is not None else "null"
    names = [version.get("name") or "" for version in versions]
    if len(set(names)) < len(names):
        yield Cause("FieldValueInvalid", "spec.versions", f"Invalid value: {shown}: must contain unique version names")
    if sum(version.get("storage") is True for version in versions) != 1:
        words = "must have exactly one version marked as storage version"
        yield Cause("FieldValueInvalid", "spec.versions", f"Invalid value: {shown}: {words}")
    if names and names[0] and (problems := label_1035_problems(names[0])):
        yield invalid("spec.version", names[0], ",".join(problems))


def _names(names: JsonObject, at: str) -> Iterator[Cause]:
    for name, words in (("plural", ""), ("singular", ""), ("kind", _MIXED_CASE), ("listKind", _MIXED_CASE)):
        value = names.get(name) or ""
        problems = label_1035_problems(value.lower() if words else value) if value else []
        if problems:
            yield invalid(f"{at}.{name}", value, words + ",".join(problems))
    yield from _labels(names.get("shortNames"), f"{at}.shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield invalid(f"{at}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _labels(names.get("categories"), f"{at}.categories")


def _labels(values: list[str] | None, at: str) -> Iterator[Cause]:
    for index, value in enumerate(values or ()):
        if problems := label_1035_problems(value):
            yield invalid(f"{at}[{index}]", value, ",".join(problems))


def _conversion(conversion: JsonObject | None) -> Iterator[Cause]:
    if conversion is None:
        return
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    yield from _choice("spec.conversion.strategy", strategy, _STRATEGIES)
    client, versions = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy != "Webhook":
        words = "should not be set when strategy is not set to Webhook"
        if client is not None:
            yield forbidden("spec.conversion.webhookClientConfig", words)
        if versions:
            yield forbidden("spec.conversion.conversionReviewVersions", words)
        return
    place = "spec.conversion.webhookClientConfig"
    if client is None:
        yield required(place, "required when strategy is set to Webhook")
    elif (client.get("url") is None) == (client.get("service") is None):
        yield required(place, "exactly one of url or service is required")
    yield from _review_versions(versions)


def _review_versions(versions: list[str]) -> Iterator[Cause]:
    at = "spec.conversion.conversionReviewVersions"
    if not versions:
        yield required(at)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{at}[{index}]", version, "duplicate version")
            continue
        for problem in label_1035_problems(version):
            yield invalid(f"{at}[{index}]", version, problem)
    if not {"v1", "v1beta1"} & set(versions):
        yield invalid(at, versions, "must include at least one of v1, v1beta1")


def _immutable(spec: JsonObject, old: JsonObject) -> Iterator[Cause]:
    before = old["spec"]
    conditions = (old.get("status") or {}).get("conditions") or ()
    established = any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
    fields: list[tuple[str, Callable[[JsonObject], Any]]] = [
        ("spec.group", lambda one: one.get("group")),
        ("spec.names.plural", lambda one: one["names"].get("plural")),
    ]
    if established:
        fields = [
            ("spec.scope", lambda one: one.get("scope")),
            ("spec.names.kind", lambda one: one["names"].get("kind")),
            *fields,
        ]
    for field, read in fields:
        if read(spec) != read(before):
            yield invalid(field, read(spec), "field is immutable")


def _stored_versions(stored: list[str] | None, versions: list[JsonObject]) -> Iterator[Cause]:
    at = "status.storedVersions"
    if not stored:
        yield invalid(at, stored, "must have at least one stored version")
        return
    for version in versions:
        if version.get("storage") and version.get("name") not in stored:
            yield invalid(at, stored, f"must have the storage version {version.get('name')}")
    names = {version.get("name") for version in versions}
    for index, name in enumerate(stored):
        if name not in names:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield invalid(f"{at}[{index}]", name, words)
