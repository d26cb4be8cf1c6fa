"""Every generated name, label and annotation, in one place.

Names are derived from their inputs alone, so that a reconcile that runs twice asks for the same object twice. A name
that would pass 63 characters is cut and closed with eight hex digits of a hash of the whole, which keeps two long names
apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kardinal.objects.naming import NAME_LIMIT, bounded, short_hash

__all__ = [
    "ANNOTATION_ATTESTATION",
    "ANNOTATION_HOSTS",
    "ANNOTATION_IDEMPOTENCY_BODY",
    "ANNOTATION_PIN",
    "ANNOTATION_SOURCE",
    "ANNOTATION_WOKEN",
    "ATTESTATION_SECRET",
    "CREDENTIALS_GIT",
    "CREDENTIALS_KUBECONFIG",
    "CREDENTIALS_REGISTRY",
    "CREDENTIALS_SIGNING",
    "CREDENTIALS_STEP",
    "CREDENTIALS_WEBHOOK",
    "FIELD_MANAGER_AGENT",
    "FIELD_MANAGER_CONTROLLER",
    "FINALIZER",
    "LABEL_APPLIES_TO",
    "LABEL_BUNDLE",
    "LABEL_CREDENTIALS",
    "LABEL_ENVIRONMENT",
    "LABEL_GATE",
    "LABEL_PIPELINE",
    "LABEL_SCOPE",
    "LABEL_SHARD",
    "LABEL_TYPE",
    "PROPOSALS",
    "SYSTEM_NAMESPACE",
    "TRAILER_ATTEMPT",
    "TRAILER_BUNDLE",
    "TRAILER_CONFIG",
    "TRAILER_ENVIRONMENT",
    "TRAILER_STEP",
    "TRAILER_UID",
    "TYPE_FREEZE",
    "TYPE_GATE",
    "TYPE_HOLD",
    "TYPE_SKIP_PERMISSION",
    "VERSIONS",
    "WEBHOOK_SECRET",
    "branch_name",
    "bundle_name",
    "earlier_branch_name",
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

LABEL_PIPELINE = "kardinal.io/pipeline"
LABEL_BUNDLE = "kardinal.io/bundle"
LABEL_ENVIRONMENT = "kardinal.io/environment"
LABEL_GATE = "kardinal.io/gate"
LABEL_SCOPE = "kardinal.io/scope"
LABEL_APPLIES_TO = "kardinal.io/applies-to"
LABEL_TYPE = "kardinal.io/type"
LABEL_SHARD = "kardinal.io/shard"
LABEL_CREDENTIALS = "kardinal.io/credentials"
"""On a Secret: the purpose its credentials may be used for."""

CREDENTIALS_GIT = "git"
"""The value of `LABEL_CREDENTIALS` on a Secret that may be sent to Git hosts."""

CREDENTIALS_SIGNING = "git-signing"
"""The value of `LABEL_CREDENTIALS` on a Secret whose key signs commits."""

CREDENTIALS_KUBECONFIG = "kubeconfig"
"""The value of `LABEL_CREDENTIALS` on a Secret with the kubeconfig of a cluster that environments are proved in."""

CREDENTIALS_WEBHOOK = "webhook"
"""The value of `LABEL_CREDENTIALS` on a Secret whose `webhookSecret` signs the deliveries of a Git host."""

CREDENTIALS_REGISTRY = "registry"
"""The value of `LABEL_CREDENTIALS` on a Secret that may be sent to image registries."""

CREDENTIALS_STEP = "step"
"""The value of `LABEL_CREDENTIALS` on a Secret that may be sent to the endpoints of custom steps."""

TYPE_GATE = "gate"
TYPE_SKIP_PERMISSION = "skip-permission"
TYPE_FREEZE = "freeze"
TYPE_HOLD = "hold"

PROPOSALS = "kardinal/"
"""The prefix of branches that hold proposals."""

FINALIZER = "kardinal.io/proposal"
"""On a PromotionStep: while a branch or pull request of it may exist."""

ANNOTATION_HOSTS = "kardinal.io/hosts"
"""On a Secret: the hosts, `host[:port]` separated by commas, that it may be sent to."""
ANNOTATION_PIN = "kardinal.io/pin"
"""On a Bundle: `true` where newer ones do not take its place. A label of this name would be read by nothing."""
ANNOTATION_SOURCE = "kardinal.io/source"
ANNOTATION_WOKEN = "kardinal.io/woken-at"
"""On a PromotionStep: when a host last said that its pull request may have changed. It says nothing else."""
ANNOTATION_ATTESTATION = "kardinal.io/attestation"
ANNOTATION_IDEMPOTENCY_BODY = "kardinal.io/idempotency-body"

TRAILER_BUNDLE = "Kardinal-Bundle"
TRAILER_ENVIRONMENT = "Kardinal-Environment"
TRAILER_STEP = "Kardinal-Step"
TRAILER_CONFIG = "Kardinal-Config"
"""Of a Bundle with a configuration: its commit, its repository, and the directory that it was merged into."""
TRAILER_ATTEMPT = "Kardinal-Attempt"
"""The number of an attempt that a person asked for: what an earlier one has landed may be gone since."""
TRAILER_UID = "Kardinal-Uid"
"""The Bundle's uid: one deleted and made again under its name must not take the first one's commits for its own."""

WEBHOOK_SECRET = "kardinal-webhook"  # noqa: S105 - the name of a Secret, not a secret

ATTESTATION_SECRET = "kardinal-attestation"  # noqa: S105 - the name of a Secret, not a secret

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
    """Return the name of the one rollback that follows by itself from the failure of a Bundle in an environment."""
    suffix = short_hash(f"{uid}/{environment}")
    return f"{bounded(f'{bundle}-{environment}-rollback')[: NAME_LIMIT - len(suffix) - 1].rstrip('-.')}-{suffix}"


def label_value(text: str) -> str:
    """`text` where it fits into a label value, else cut the way names are."""
    return bounded(text)


def is_reserved_for_ci(label: str) -> bool:
    """Return whether a label is one of kardinal's own, in which CI has no say."""
    prefix, slash, _ = label.rpartition("/")
    ours = any(prefix == domain or prefix.endswith(f".{domain}") for domain in _OUR_DOMAINS)
    return bool(slash) and ours


def slug(text: str) -> str:
    """Lower-case letters, digits and single dashes: what of `text` can stand in a name."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def bundle_name(pipeline: str, version: str, suffix: str) -> str:
    """`<pipeline>-<version>-<suffix>`; cutting spares the suffix (a time or a hash), which makes the name unique.

    `version` may count more artifacts: `1.2.0 (+2)` becomes `1-2-0-plus-2`.
    """
    stem = "-".join(part for part in (pipeline, slug(version.replace("(+", " plus "))) if part)
    room = NAME_LIMIT - len(suffix) - 1
    return f"{stem[:room].rstrip('-.')}-{suffix}"


def branch_name(namespace: str, bundle: str, environment: str, attempt: int | None = None) -> str:
    """Return the proposal branch of a pull request: the same however often one attempt is made again.

    Bundles of two namespaces may have one name, and their Pipelines one repository.
    """
    return f"{PROPOSALS}{namespace}/{bounded(bundle)}/{environment}" + (f"-{attempt}" if attempt else "")


def earlier_branch_name(bundle: str, environment: str, attempt: int | None = None) -> str:
    """Return the proposal branch without its namespace, as earlier versions named it."""
    return f"{PROPOSALS}{bundle}/{environment}" + (f"-{attempt}" if attempt else "")


def _camel(text: str) -> str:
    first, *rest = [part for part in re.split(r"[^A-Za-z0-9]+", text) if part] or ["x"]
    return first[:1].lower() + first[1:] + "".join(part[:1].upper() + part[1:] for part in rest)


def node_ids(environments: Iterable[str], gates: Iterable[tuple[str, str, str]]) -> dict[tuple[str, ...], str]:
    """Node ids for `(environment,)` and `(namespace, gate, environment)`.

    An id is camelCase; `0` and a hash of its key are appended where it is reserved, starts with a digit, is too long,
    or folds onto another one case-insensitively. The ids carry no Bundle name, so that compiled programs are shared.
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
