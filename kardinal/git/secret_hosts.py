"""Decide which Secret may be sent to which Git host, from values alone.

A Secret says itself that it is for Git (label `kardinal.io/credentials: git`) and for which hosts (annotation
`kardinal.io/hosts`). Who may write a Pipeline names a Secret and a URL; without the Secret's own word that would be
enough to have any Secret of the namespace sent anywhere. A refusal holds the two commands that mend it, and names
Secret, namespace and host; it never holds a value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from kardinal.api import names

__all__ = ["host_allowed", "refused_host", "refused_signing"]

_PURPOSES = {
    names.CREDENTIALS_GIT: "a Git credential",
    names.CREDENTIALS_REGISTRY: "a credential of registries",
    names.CREDENTIALS_STEP: "a credential of custom steps",
}
_HTTPS = ":443"
_HOSTS_SHOWN = 300
"""Characters of the hosts that a Secret has already, up to which the command in a refusal repeats them."""


def refused_host(secret: Mapping[str, Any], host: str, *, purpose: str = names.CREDENTIALS_GIT) -> str:
    """Return why the Secret may not be sent to `host` (`host[:port]`), with the commands that mend it; empty if it may.

    The Secret needs its name and its namespace, and no data. `purpose` is the value that its label must have.
    """
    metadata = secret["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    marked = (metadata.get("labels") or {}).get(names.LABEL_CREDENTIALS) == purpose
    named = _hosts((metadata.get("annotations") or {}).get(names.ANNOTATION_HOSTS) or "")
    if marked and host in named:
        return ""
    kept = [one for one in named if _plain(one) and one != host]
    hosts = ",".join([*(kept if len(",".join(kept)) <= _HOSTS_SHOWN else ()), host])
    return (
        f"Secret {namespace}/{name} is not marked as {_PURPOSES[purpose]} for {host}; if it may be sent there, run:\n"
        f"kubectl -n {namespace} label secret {name} {names.LABEL_CREDENTIALS}={purpose}\n"
        f"kubectl -n {namespace} annotate --overwrite secret {name} {names.ANNOTATION_HOSTS}={hosts}\n"
    )


def refused_signing(secret: Mapping[str, Any]) -> str:
    """Return why the key of a Secret may not sign commits, with the command that mends it; empty if it may."""
    metadata = secret["metadata"]
    name, namespace = metadata["name"], metadata["namespace"]
    if (metadata.get("labels") or {}).get(names.LABEL_CREDENTIALS) == names.CREDENTIALS_SIGNING:
        return ""
    return (
        f"Secret {namespace}/{name} is not marked as a key that signs commits; if it may be used for that, run:\n"
        f"kubectl -n {namespace} label --overwrite secret {name} "
        f"{names.LABEL_CREDENTIALS}={names.CREDENTIALS_SIGNING}\n"
    )


def host_allowed(host: str, patterns: Sequence[str]) -> bool:
    """Return whether one of `patterns` matches `host`; `*` stands for any characters, no pattern for every host.

    A pattern without a port means that of https; `host:*` means every port.
    """
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):
        name, port = host, "443"
    return not patterns or any(_matches(f"{name}:{port}", pattern.lower()) for pattern in patterns)


def _matches(host: str, pattern: str) -> bool:
    if pattern == "*":
        return True
    if not re.search(r":[0-9*]+$", pattern) or pattern.endswith("]"):
        pattern += _HTTPS
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), host) is not None


def _hosts(text: str) -> list[str]:
    return [entry.strip().lower().removesuffix(_HTTPS) for entry in text.split(",") if entry.strip()]


def _plain(host: str) -> bool:
    return re.fullmatch(r"[\w.\[\]:-]+", host) is not None
