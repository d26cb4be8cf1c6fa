"""Rules about `health`: it must name the object of one tool, in one way; and the defaults of what it leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kardinal.models.base import Model
from kardinal.promotion.api.health import Health
from kardinal.promotion.api.health_adapters import BUILTIN_ADAPTERS, NO_DELEGATE, RESOURCE, HealthResource

__all__ = [
    "health_problems",
    "health_type",
    "is_detected",
    "names_proof",
    "proof_without_tool",
    "resolved_objects",
    "unstated",
]

_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def health_type(health: Health, *, delegate: str = NO_DELEGATE) -> str | None:
    """Return the given `type`, or else that of the only object that is named; None if neither is given.

    The object of a delegate does not count, because the report of the delegate is checked in addition to the proof.
    """
    named = [kind for kind in _named(health) if kind != delegate]
    return health.type or (named[0] if len(named) == 1 else None)


def is_detected(health: Health, *, delegate: str = NO_DELEGATE) -> bool:
    """Return whether the agent detects the tool of the environment at the time of a promotion.

    In another cluster it detects none, because it does not know whom the namespaces there trust.
    """
    return health_type(health, delegate=delegate) is None and health.cluster is None


def proof_without_tool(delegate: str) -> str:
    """Return the type of the proof if no GitOps tool is named or detected."""
    return RESOURCE.name if delegate == NO_DELEGATE else delegate


def health_problems(health: Health, *, delegate: str = NO_DELEGATE) -> Iterator[tuple[str, str]]:
    """Yield (field, message) for each problem; the field is relative to `health`.

    The object of a delegate may be left out: it defaults to the one with the Pipeline's name.
    """
    if health.resource is not None:
        yield from _resource_problems(health.resource)
    named = [each for each in _named(health) if each != delegate]
    kind = health.type
    if kind is None and len(named) > 1:
        yield named[1], f"stands beside {named[0]}: leave one of them out, or set type"
    if kind is None or kind not in BUILTIN_ADAPTERS:
        return
    if BUILTIN_ADAPTERS[kind].default is None and kind != delegate and kind not in named:
        yield kind, f"is missing: with type {kind}, name the object that speaks for the environment"
    for other in named:
        if other != kind:
            yield other, f"is not looked at with type {kind}: leave one of them out"


def names_proof(health: Health) -> bool:
    """Return whether the author of `health` has named an adapter or an object."""
    fields = {"type", *(adapter.attribute for adapter in BUILTIN_ADAPTERS.values())}
    return bool(fields & health.model_fields_set)


def resolved_objects(
    health: Health, *, kind: str | None, delegate: str, environment: str, pipeline: str
) -> dict[str, Model]:
    """Return the objects of the adapter `kind` and of the delegate with their defaults, by attribute of `Health`.

    The namespace of an object defaults to the name of the environment.
    """
    found: dict[str, Model] = {}
    for name, adapter in BUILTIN_ADAPTERS.items():
        named = getattr(health, adapter.attribute)
        if named is None and name == kind and adapter.default is not None:
            named = adapter.default()
        if named is None and name == delegate and adapter.delegate is not None:
            named = adapter.delegate(pipeline)
        if named is None or (name != kind and adapter.delegate is None):
            continue
        if named.namespace is None:
            named = named.model_copy(update={"namespace": environment})
        found[adapter.attribute] = named if adapter.complete is None else adapter.complete(named)
    return found


def unstated(health: Health, *, delegate: str) -> Iterator[str]:
    """Yield the missing fields, relative to `health`, that only a Pipeline may leave out."""
    proof = BUILTIN_ADAPTERS.get(health.type or "")
    if health.timeout is None:
        yield "timeout"
    if health.type is None and not is_detected(health, delegate=delegate):
        yield "type"
    if proof is not None:
        named = getattr(health, proof.attribute)
        yield from (f"{proof.name}.{field}" for field in proof.stated if getattr(named, field, None) is None)
    if delegate != NO_DELEGATE and getattr(health, BUILTIN_ADAPTERS[delegate].attribute) is None:
        yield delegate


def _named(health: Health) -> list[str]:
    return [name for name, adapter in BUILTIN_ADAPTERS.items() if getattr(health, adapter.attribute) is not None]


def _resource_problems(resource: HealthResource) -> Iterator[tuple[str, str]]:
    given = [name for name in ("name", "names", "selector") if getattr(resource, name)]
    if len(given) > 1:
        yield f"resource.{given[1]}", f"stands beside {given[0]}: use one of name, names and selector"
    for key, value in (resource.selector or {}).items():
        if not _is_label(key) or (value and not _LABEL_NAME.fullmatch(value)):
            yield "resource.selector", f"{key}={value} is no label and value of one"


def _is_label(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    return bool(_LABEL_NAME.fullmatch(name)) and (not slash or bool(_LABEL_PREFIX.fullmatch(prefix)))
