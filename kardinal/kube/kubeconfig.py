"""Load the connection to an API server in the same way as kubectl.

Search order: explicit path, KUBECONFIG, ~/.kube/config, the service account of the pod. Files are read, and plugins
run, on a thread. OpenSSL reads keys only from files, so embedded keys are written into a directory that only this user
can enter and that is deleted after loading. Errors name the file and the remedy and quote no credentials.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kardinal.kube.connection import ClusterAccess, Connection
from kardinal.kube.contexts import KubeContext, NoContext, Unusable, choose_context
from kardinal.kube.credentials import read_credentials
from kardinal.kube.errors import ConfigError
from kardinal.kube.in_cluster import load_service_account, runs_in_cluster
from kardinal.kube.plugins import DEADLINE
from kardinal.kube.tls import client_context

__all__ = ["MALFORMED", "access_of", "load_connection"]

# Raised for certificates that do not fit, for files that disappear, and by the library that runs plugins.
MALFORMED = (ssl.SSLError, ValueError, TypeError, KeyError, AttributeError, AssertionError, OSError)


async def load_connection(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """Return a connection to the API server that kubectl would use; raises `ConfigError` with the remedy."""

    async def load() -> ClusterAccess:
        return await asyncio.to_thread(_load, kubeconfig, context)

    return Connection(await load(), load=load)


def _load(kubeconfig: Path | None, context: str | None) -> ClusterAccess:
    if files := _files(kubeconfig):
        return _load_files(files, context)
    if runs_in_cluster():
        return load_service_account()
    raise ConfigError(
        "no API server is configured: pass --kubeconfig, set KUBECONFIG, create ~/.kube/config, "
        "or start one with `kardinal local up`"
    )


def _files(kubeconfig: Path | None) -> list[Path]:
    """Return the files to merge; raises ConfigError if an explicitly given file does not exist."""
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ConfigError(f"{kubeconfig} does not exist: pass the path of an existing kubeconfig")
        return [kubeconfig]
    if listed := os.environ.get("KUBECONFIG"):
        paths = [Path(item).expanduser() for item in listed.split(os.pathsep) if item]
        found = [path for path in paths if path.is_file()]
        if not found:
            raise ConfigError(f"KUBECONFIG names {listed}, which does not exist: correct or unset it")
        return found
    default = Path.home() / ".kube" / "config"
    return [default] if default.is_file() else []


def _load_files(files: Sequence[Path], name: str | None) -> ClusterAccess:
    named = os.pathsep.join(map(str, files))
    try:
        return access_of(choose_context(files, name))
    except NoContext as error:
        raise ConfigError(f"{named} {error}") from None
    except Unusable as error:
        raise ConfigError(f"{named} cannot be used: {error}. Compare with `kubectl config view`.") from None
    except TimeoutError:
        raise ConfigError(f"{named}: the exec plugin did not answer within {DEADLINE:.0f} s") from None
    except MALFORMED as error:
        raise ConfigError(
            f"{named} cannot be used ({type(error).__name__}): it is not a well-formed kubeconfig. "
            "Compare with `kubectl config view`."
        ) from None


def access_of(context: KubeContext) -> ClusterAccess:
    """Return the access of a context. Raises Unusable, and the exceptions in `MALFORMED`."""
    cluster = context.cluster
    server = cluster.text("server")
    if server is None:
        raise Unusable(f"an entry is incomplete: {cluster.title} names no server")
    if not server.startswith(("https://", "http://")):
        raise Unusable("the cluster's server must be an http(s) URL")
    with tempfile.TemporaryDirectory(prefix="kardinal-") as directory:
        scratch = Path(directory)
        credentials = read_credentials(context.user, scratch)
        tls = None
        if server.startswith("https://"):
            tls = client_context(
                authority=cluster.file("certificate-authority", scratch),
                verified=not cluster.flag("insecure-skip-tls-verify"),
                certificate=credentials.certificate,
                key=credentials.key,
            )
    return ClusterAccess(
        server=server.rstrip("/"),
        namespace=context.namespace,
        authorization=credentials.authorization,
        tls=tls,
        tls_server_name=cluster.text("tls-server-name"),
        proxy=cluster.text("proxy-url"),
        lifetime=credentials.lifetime,
        presents_certificate=credentials.certificate is not None,
    )
