"""The service account of the pod that this process runs in.

The kubelet replaces the token in its file long before it expires, by default after 48 minutes of its hour, so the file
is read again after a minute.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from kardinal.kube.connection import ClusterAccess
from kardinal.kube.errors import ConfigError
from kardinal.kube.tls import client_context

__all__ = ["load_service_account", "namespace_of_pod", "runs_in_cluster"]

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
LIFETIME = 60.0

_HOST = "KUBERNETES_SERVICE_HOST"
_PORT = "KUBERNETES_SERVICE_PORT"


def runs_in_cluster() -> bool:
    """Return whether the environment variables of a pod with an API server are set."""
    return bool(os.environ.get(_HOST))


def namespace_of_pod() -> str | None:
    """Return the namespace of the pod that this process runs in; None outside of a pod."""
    file = SERVICE_ACCOUNT / "namespace"
    return file.read_text().strip() or None if runs_in_cluster() and file.is_file() else None


def load_service_account() -> ClusterAccess:
    """Read the files that the kubelet mounts into every pod; raises ConfigError if one of them is missing."""
    try:
        return _load(os.environ, SERVICE_ACCOUNT)
    except (_Missing, OSError, ValueError) as error:
        raise ConfigError(f"the service account of this pod cannot be used: {error}") from None


class _Missing(Exception):
    pass


def _load(environment: Mapping[str, str], directory: Path) -> ClusterAccess:
    host = environment.get(_HOST)
    port = environment.get(_PORT)
    if not host or not port:
        raise _Missing("Service host/port is not set.")
    token = _content(directory / "token", "Service token file")
    authority = directory / "ca.crt"
    _content(authority, "Service certification file")
    namespace = directory / "namespace"
    return ClusterAccess(
        server=f"https://{_bracketed(host)}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        authorization=f"Bearer {token}",
        tls=client_context(authority=authority),
        lifetime=LIFETIME,
    )


def _content(path: Path, title: str) -> str:
    if not path.is_file():
        raise _Missing(f"{title} does not exist.")
    content = path.read_text().strip()
    if not content:
        raise _Missing(f"{title} exists but empty.")
    return content


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
