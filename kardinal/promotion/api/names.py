"""Every generated name, label and annotation, in one place.

Names are computed from their inputs alone, so a reconcile that runs twice refers to the same object twice. A name of
more than 63 characters is cut and ends with eight hex digits of a hash of the whole name, so that two long names stay
distinct.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kardinal.objects.naming import NAME_LIMIT, bounded, short_hash
from kardinal.tree.git_names import PROPOSALS

__all__ = [
    "ANNOTATION_ATTESTATION",
    "ANNOTATION_IDEMPOTENCY_BODY",
    "ANNOTATION_PIN",
    "ANNOTATION_SOURCE",
    "ANNOTATION_WOKEN",
    "ATTESTATION_SECRET",
    "FIELD_MANAGER_AGENT",
    "FIELD_MANAGER_CONTROLLER",
    "FINALIZER",
    "LABEL_APPLIES_TO",
    "LABEL_BUNDLE",
    "LABEL_ENVIRONMENT",
    "LABEL_GATE",
    "LABEL_PIPELINE",
    "LABEL_SCOPE",
    "LABEL_SHARD",
    "LABEL_TYPE",
    "SYSTEM_NAMESPACE",
    "TYPE_FREEZE",
    "TYPE_GATE",
    "TYPE_HOLD",
    "TYPE_SKIP_PERMISSION",
    "UI_SECRET",
    "VERSIONS",
    "WAITING_FOR_GRAPH",
    "WEBHOOK_SECRET",
    "branch_name",
    "bundle_name",
    "freeze_name",
    "gate_name",
    "hold_name",
    "is_reserved_for_ci",
    "label_value",
    "node_ids",
    "rollback_name",
    "slug",
    "step_name",
]

WAITING_FOR_GRAPH = "WaitingForGraph"
"""The reason of the condition Ready of an Available Bundle whose Graph a person writes, until one is admitted."""

LABEL_PIPELINE = "kardinal.io/pipeline"
LABEL_BUNDLE = "kardinal.io/bundle"
LABEL_ENVIRONMENT = "kardinal.io/environment"
LABEL_GATE = "kardinal.io/gate"
LABEL_SCOPE = "kardinal.io/scope"
LABEL_APPLIES_TO = "kardinal.io/applies-to"
LABEL_TYPE = "kardinal.io/type"
LABEL_SHARD = "kardinal.io/shard"


TYPE_GATE = "gate"
TYPE_SKIP_PERMISSION = "skip-permission"
TYPE_FREEZE = "freeze"
TYPE_HOLD = "hold"


FINALIZER = "kardinal.io/proposal"
"""Finalizer of a PromotionStep while a branch or pull request of it may exist."""

ANNOTATION_PIN = "kardinal.io/pin"
"""Annotation of a Bundle: with the value `true`, newer Bundles do not supersede it.

A label of this name has no effect.
"""
ANNOTATION_SOURCE = "kardinal.io/source"
ANNOTATION_WOKEN = "kardinal.io/woken-at"
"""Annotation of a PromotionStep: the time at which a host last reported that its pull request may have changed."""
ANNOTATION_ATTESTATION = "kardinal.io/attestation"
ANNOTATION_IDEMPOTENCY_BODY = "kardinal.io/idempotency-body"


WEBHOOK_SECRET = "kardinal-webhook"  # noqa: S105 - the name of a Secret, not a secret

ATTESTATION_SECRET = "kardinal-attestation"  # noqa: S105 - the name of a Secret, not a secret

UI_SECRET = "kardinal-ui"  # noqa: S105 - the name of a Secret, not a secret

SYSTEM_NAMESPACE = "kardinal-system"
"""The namespace of the programs in `deploy/`."""

VERSIONS = "kardinal-versions"
"""ConfigMap in the namespace of the programs: program, such as `controller` or `agent-eu` -> the version that runs."""

FIELD_MANAGER_CONTROLLER = "kardinal-controller"
FIELD_MANAGER_AGENT = "kardinal-agent"

_OUR_DOMAINS = ("kardinal.io", "kro.run")

_RESERVED_NODE_IDS = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "return",
        "var",
        "void",
        "while",
        "self",
        "namespace",
        "each",
        "item",
        "bundle",
        "freeze",
    ]
)


def step_name(bundle: str, environment: str) -> str:
    return bounded(f"{bundle}-{environment}")


def gate_name(bundle: str, environment: str, gate: str) -> str:
    return bounded(f"{bundle}-{environment}-{gate}")


def freeze_name(pipeline: str) -> str:
    return bounded(f"{pipeline}-freeze")


def hold_name(pipeline: str, environment: str) -> str:
    return bounded(f"{pipeline}-{environment}-hold")


def rollback_name(bundle: str, environment: str, uid: str) -> str:
    """Return the name of the automatic rollback after a failure of a Bundle in an environment; there is only one."""
    suffix = short_hash(f"{uid}/{environment}")
    return f"{bounded(f'{bundle}-{environment}-rollback')[: NAME_LIMIT - len(suffix) - 1].rstrip('-.')}-{suffix}"


def label_value(text: str) -> str:
    """Return `text` if it fits into a label value, and otherwise cut in the same way as names."""
    return bounded(text)


def is_reserved_for_ci(label: str) -> bool:
    """Return whether a label is one of kardinal's own, which CI may not set."""
    prefix, slash, _ = label.rpartition("/")
    ours = any(prefix == domain or prefix.endswith(f".{domain}") for domain in _OUR_DOMAINS)
    return bool(slash) and ours


def slug(text: str) -> str:
    """Return `text` reduced to lower-case letters, digits and single dashes, for use in a name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def bundle_name(pipeline: str, version: str, suffix: str) -> str:
    """Return `<pipeline>-<version>-<suffix>`, for example `app-1-2-0-1767225600`.

    If the name is too long, pipeline and version are cut. The suffix, a time or a hash, makes the name unique and is
    kept. `version` may count more artifacts: `1.2.0 (+2)` becomes `1-2-0-plus-2`.
    """
    stem = "-".join(part for part in (pipeline, slug(version.replace("(+", " plus "))) if part)
    room = NAME_LIMIT - len(suffix) - 1
    return f"{stem[:room].rstrip('-.')}-{suffix}"


def branch_name(namespace: str, bundle: str, environment: str, attempt: int | None = None) -> str:
    """Return the proposal branch of a pull request; it is the same each time an attempt is made again.

    The namespace is part of it, because two namespaces may have Bundles with the same name and Pipelines with the same
    repository. The number of an attempt follows a dot, which the name of an environment cannot contain:
    `kardinal/team/app-1/prod.2`.
    """
    return f"{PROPOSALS}{namespace}/{bounded(bundle)}/{environment}" + (f".{attempt}" if attempt else "")


def _camel(text: str) -> str:
    first, *rest = [part for part in re.split(r"[^A-Za-z0-9]+", text) if part] or ["x"]
    return first[:1].lower() + first[1:] + "".join(part[:1].upper() + part[1:] for part in rest)


def node_ids(environments: Iterable[str], gates: Iterable[tuple[str, str, str]]) -> dict[tuple[str, ...], str]:
    """Return node ids for the keys `(environment,)` and `(namespace, gate, environment)`.

    An id is camelCase. `0` and a hash of its key are appended if the id is reserved, starts with a digit, is too long,
    or differs from another id only in case. The ids do not contain the name of the Bundle, so compiled programs are
    shared.
    """
    wanted: dict[tuple[str, ...], str] = {(environment,): _camel(environment) for environment in environments}
    wanted |= {key: f"{_camel(key[1])}0{_camel(key[2])}" for key in gates}
    folded = [identifier.lower() for identifier in wanted.values()]

    def usable(key: tuple[str, ...], identifier: str) -> str:
        unusable = (
            identifier.lower() in _RESERVED_NODE_IDS
            or identifier[0].isdigit()
            or len(identifier) > NAME_LIMIT
            or folded.count(identifier.lower()) > 1
        )
        if not unusable:
            return identifier
        stem = f"n{identifier}" if identifier[0].isdigit() else identifier
        return f"{stem[: NAME_LIMIT - 9]}0{short_hash('/'.join(key))}"

    return {key: usable(key, identifier) for key, identifier in wanted.items()}
