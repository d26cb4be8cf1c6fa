"""Check `health` as it is written: which objects it names, and that it names them in one way."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kardinal.api.health import Health, HealthResource

__all__ = ["NO_DELEGATE", "health_problems", "health_type", "is_detected", "proof_without_tool"]

NO_DELEGATE = "none"

_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")

_FIELDS = {
    "resource": "resource",
    "argocd": "argocd",
    "flux": "flux",
    "argoRollouts": "argo_rollouts",
    "flagger": "flagger",
}
"""The built-in values of `type`, each also the field that names its objects, and the attribute of that."""


def health_type(health: Health, *, delegate: str = NO_DELEGATE) -> str | None:
    """Return the `type` that is given, else that of the one object that is named; None where none is.

    The object of a delegate does not say it: what the delegate reports comes on top of the proof.
    """
    named = [kind for kind in _named(health) if kind != delegate]
    return health.type or (named[0] if len(named) == 1 else None)


def is_detected(health: Health, *, delegate: str = NO_DELEGATE) -> bool:
    """Return whether what proves an environment is found at its promotion.

    In another cluster nothing is: whom the namespaces there trust is not known here.
    """
    return health_type(health, delegate=delegate) is None and health.cluster is None


def proof_without_tool(delegate: str) -> str:
    """Return the type of the proof where no GitOps tool is named or found."""
    return "resource" if delegate == NO_DELEGATE else delegate


def health_problems(health: Health, *, delegate: str = NO_DELEGATE) -> Iterator[tuple[str, str]]:
    """Yield the field, relative to `health`, and what is wrong with it.

    The object of a delegate may be left out: it is then the one with the Pipeline's name.
    """
    if health.resource is not None:
        yield from _resource_problems(health.resource)
    named, kind = [each for each in _named(health) if each != delegate], health.type
    if kind is None and len(named) > 1:
        yield named[1], f"stands beside {named[0]}: leave one of them out, or set type"
    if kind not in _FIELDS:
        return
    if kind not in ("resource", delegate) and kind not in named:
        yield kind, f"is missing: with type {kind}, name the object that speaks for the environment"
    for other in named:
        if other != kind:
            yield other, f"is not looked at with type {kind}: leave one of them out"


def _named(health: Health) -> list[str]:
    return [kind for kind, attribute in _FIELDS.items() if getattr(health, attribute) is not None]


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
