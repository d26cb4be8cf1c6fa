"""Check `health` as it is written: which objects it names, and that it names them in one way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from kardinal.api.health import Health, HealthResource

__all__ = ["health_problems"]

_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


def health_problems(health: Health) -> Iterator[tuple[str, str]]:
    """Yield the field, relative to `health`, and what is wrong with it."""
    if health.resource is not None:
        yield from _resource_problems(health.resource)
    objects: Mapping[str, object] = {
        "argocd": health.argocd,
        "flux": health.flux,
        "argoRollouts": health.argo_rollouts,
        "flagger": health.flagger,
    }
    if health.type is not None and health.type in objects and objects[health.type] is None:
        yield health.type, f"is missing: with type {health.type}, name the object that speaks for the environment"
    for kind, named in objects.items():
        if named is not None and health.type not in (None, kind):
            yield kind, f"is not looked at with type {health.type}: leave one of them out"


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
