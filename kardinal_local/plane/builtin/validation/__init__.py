"""Validate objects of built-in kinds as the real server does, as far as manifests usually fail there.

    core            configuration, secrets, claims
    services        services; addresses: their addresses and IP families
    pods            pod specs, wherever they occur
    workloads       what makes pods: selectors, strategies, what cannot change
    policies        roles, budgets, autoscalers, ingresses, leases and the like
    faults          the sentences of a refusal, by plain paths

A real server's checks of typed objects are some twenty thousand lines; these are the mistakes that a manifest usually
has. What is let through here and refused there stands in
docs/local-plane-limits.md.
"""

from __future__ import annotations

from kardinal_local.plane.builtin.validation import core, pods, policies, services, workloads
from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import Cause

__all__ = ["notes", "problems"]

_CHECKS = {**core.CHECKS, **services.CHECKS, **pods.CHECKS, **workloads.CHECKS, **policies.CHECKS}


def problems(group: str, kind: str, document: JsonObject, *, old: JsonObject | None) -> list[Cause]:
    """Everything for which an object of a built-in kind must be refused."""
    check = _CHECKS.get((group, kind))
    return [] if check is None else list(check(document, old))


def notes(group: str, kind: str, document: JsonObject) -> tuple[str, ...]:
    """What the author of a good object should be told."""
    return tuple(services.notes(document)) if (group, kind) == ("", "Service") else ()
