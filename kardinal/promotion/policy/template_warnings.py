"""Warn the author of a gate template about parts that have no effect, before a Bundle meets the gate.

`ignored_fields` and `label_mistakes` look at the template alone. `gate_warnings`, `name_warnings` and
`namespace_warnings` look at its namespace and at the Pipelines and environments that it selects.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from kardinal.promotion.api import PolicyGate
from kardinal.promotion.api.names import LABEL_PIPELINE, LABEL_SCOPE, LABEL_TYPE, TYPE_FREEZE, TYPE_GATE, TYPE_HOLD
from kardinal.promotion.api.names import TYPE_SKIP_PERMISSION as SKIP_PERMISSION
from kardinal.promotion.policy.comparisons import comparisons, label_mistake
from kardinal.promotion.policy.evaluate import skip_warning
from kardinal.promotion.policy.matching import named_environments

__all__ = ["gate_warnings", "ignored_fields", "label_mistakes", "name_warnings", "namespace_warnings"]

_TYPES = (TYPE_GATE, SKIP_PERMISSION, TYPE_FREEZE, TYPE_HOLD)


def ignored_fields(gate: PolicyGate) -> Iterator[tuple[str, str]]:
    """Yield the path and the remedy of each field that is set but is read only in instances or holds."""
    of_instances = "is of the instances that Graphs make, and read of no template: leave it out, "
    if gate.spec.upstream_environment is not None:
        yield "spec.upstreamEnvironment", f"{of_instances}a soak counts in the environments right before the gate"
    if gate.spec.origin is not None:
        yield "spec.origin", f"{of_instances}and name environments in spec.appliesTo, or paths in spec.match"
    if gate.spec.except_bundle is not None and gate.metadata.labels.get(LABEL_TYPE) != TYPE_HOLD:
        yield "spec.exceptBundle", f"is of gates of type {TYPE_HOLD}, which kardinal rollback makes: leave it out"


def label_mistakes(gate: PolicyGate) -> tuple[str, ...]:
    """Return the messages about labels, which are text, compared with another type. The expression must be valid."""
    found = (label_mistake(comparison) for comparison in comparisons(gate.spec.expression))
    return tuple(filter(None, found))


def gate_warnings(
    gate: PolicyGate, *, unknown: Collection[str], policy_namespaces: Collection[str], has_pipeline: bool = True
) -> tuple[str, ...]:
    """Return the warnings about parts of a template that have no effect.

    `unknown` are the environments that it names and that no Pipeline has. `has_pipeline`: its namespace has a Pipeline.
    """
    labels = gate.metadata.labels
    namespace = gate.metadata.namespace
    org = namespace in policy_namespaces
    warnings = []
    if not org and not has_pipeline:
        places = " or ".join(["that of the Pipelines that it is to hold", *sorted(policy_namespaces)])
        warnings.append(
            f"namespace {namespace} has no Pipeline and is no policy namespace, so the gate holds nothing: "
            f"move it to {places}"
        )
    if unknown:
        warnings.append(f"no Pipeline has an environment {' or '.join(sorted(unknown))}: the gate holds nothing there")
    if labels.get(LABEL_SCOPE) == "org" and not org:
        warnings.append(f"{namespace} is not a policy namespace: the gate counts as a team's")
    if org and LABEL_PIPELINE in labels:
        warnings.append(f"{LABEL_PIPELINE} limits team gates only: this org gate holds for every Pipeline")
    kind = labels.get(LABEL_TYPE, TYPE_GATE)
    if kind == SKIP_PERMISSION and not org:
        warnings.append("only a gate in a policy namespace can permit a skip: this one permits nothing")
    elif kind == SKIP_PERMISSION and (warning := skip_warning(gate.spec.expression)):
        warnings.append(warning)
    elif kind not in _TYPES:
        warnings.append(f"{LABEL_TYPE} {kind!r} is unknown: the gate counts as {TYPE_GATE}")
    return tuple(warnings)


def name_warnings(gate: PolicyGate, *, policy_namespaces: Collection[str]) -> tuple[str, ...]:
    """Warn about an org gate that selects by names, because the author of a Pipeline can choose another name."""
    if gate.metadata.namespace not in policy_namespaces:
        return ()
    names = {
        "an environment": bool(named_environments(gate)),
        "a Pipeline": gate.spec.match is not None and gate.spec.match.pipelines is not None,
    }
    return tuple(
        f"it selects by the name of {name}, which the author of a Pipeline chooses: "
        "select by repositories, branches or paths in spec.match instead"
        for name, selects in names.items()
        if selects
    )


def namespace_warnings(gate: PolicyGate, *, policy_namespaces: Collection[str]) -> tuple[str, ...]:
    """Warn about an org gate that selects a place in Git but only some namespaces.

    A Pipeline of another namespace that writes to the same place is not held.
    """
    match = gate.spec.match
    if gate.metadata.namespace not in policy_namespaces or match is None or match.namespaces is None:
        return ()
    places = [name for name in ("repositories", "branches", "paths") if getattr(match, name) is not None]
    if not places or "*" in match.namespaces or "**" in match.namespaces:
        return ()
    return (
        f"it selects by namespaces and by {' and '.join(places)}, and all of them must match: a Pipeline of another "
        "namespace that writes to the same place is not held; leave out spec.match.namespaces",
    )
