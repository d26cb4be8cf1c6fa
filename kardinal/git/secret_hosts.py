"""Decide from values alone which Secret may be sent to which Git host.

A Secret itself says that it is for Git (label `kardinal.io/credentials: git`) and for which hosts (annotation
`kardinal.io/hosts: github.com`). The author of a Pipeline names a Secret and a URL; without these marks of the Secret,
that would be enough to have any Secret of the namespace sent anywhere. A refusal contains the two commands that allow
it, and names Secret, namespace and host; it never contains a value of the Secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from kardinal.objects.secret_purposes import (
    ANNOTATION_HOSTS,
    CREDENTIALS_GIT,
    CREDENTIALS_METRICS,
    CREDENTIALS_REGISTRY,
    CREDENTIALS_SIGNING,
    CREDENTIALS_STEP,
    LABEL_CREDENTIALS,
)

__all__ = ["host_allowed", "host_of", "refused_host", "refused_signing"]

_PURPOSES = {
    CREDENTIALS_GIT: "a Git credential",
    CREDENTIALS_METRICS: "a credential of metric servers",
    CREDENTIALS_REGISTRY: "a credential of registries",
    CREDENTIALS_STEP: "a credential of custom steps",
}
_HTTPS = ":443"
_HOSTS_SHOWN = 300
"""If the hosts of a Secret have more characters, the command in a refusal does not repeat them."""


def refused_host(secret: Mapping[str, Any], host: str, *, purpose: str = CREDENTIALS_GIT) -> str:
    """Return why the Secret may not be sent to `host` (`host[:port]`); empty if it may.

    The text contains the commands that allow it.

    Only the metadata of the Secret is read. `purpose` is the required value of its label.
    """
    metadata = secret["metadata"]
    name = metadata["name"]
    namespace = metadata["namespace"]
    marked = (metadata.get("labels") or {}).get(LABEL_CREDENTIALS) == purpose
    named = _hosts((metadata.get("annotations") or {}).get(ANNOTATION_HOSTS) or "")
    if marked and host in named:
        return ""
    kept = [one for one in named if _plain(one) and one != host]
    hosts = ",".join([*(kept if len(",".join(kept)) <= _HOSTS_SHOWN else ()), host])
    return (
        f"Secret {namespace}/{name} is not marked as {_PURPOSES[purpose]} for {host}; if it may be sent there, run:\n"
        f"kubectl -n {namespace} label secret {name} {LABEL_CREDENTIALS}={purpose}\n"
        f"kubectl -n {namespace} annotate --overwrite secret {name} {ANNOTATION_HOSTS}={hosts}\n"
    )


def refused_signing(secret: Mapping[str, Any]) -> str:
    """Return why the key of a Secret may not sign commits, with the command that allows it; empty if it may."""
    metadata = secret["metadata"]
    name = metadata["name"]
    namespace = metadata["namespace"]
    if (metadata.get("labels") or {}).get(LABEL_CREDENTIALS) == CREDENTIALS_SIGNING:
        return ""
    return (
        f"Secret {namespace}/{name} is not marked as a key that signs commits; if it may be used for that, run:\n"
        f"kubectl -n {namespace} label --overwrite secret {name} "
        f"{LABEL_CREDENTIALS}={CREDENTIALS_SIGNING}\n"
    )


def host_allowed(host: str, patterns: Sequence[str]) -> bool:
    """Return whether one of `patterns` matches `host` (`host[:port]`).

    `*` stands for any characters: `*.example.com` matches `git.example.com`. A pattern without a port means port 443;
    `host:*` means every port. Without patterns, every host matches.
    """
    name, colon, port = host.rpartition(":")
    if not colon or port.endswith("]"):
        name = host
        port = "443"
    return not patterns or any(_matches(f"{name}:{port}", pattern.lower()) for pattern in patterns)


def host_of(url: str) -> str:
    """Return `host[:port]` of a URL in the form of host lists: in lower case, without port 443."""
    parts = urlsplit(url)
    name = (parts.hostname or "").lower()
    name = f"[{name}]" if ":" in name else name
    port = parts.port or (80 if parts.scheme == "http" else 443)
    return name if port == 443 else f"{name}:{port}"


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
