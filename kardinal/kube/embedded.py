"""Read a kubeconfig from an untrusted source, such as a Secret, and accept only the fields needed to connect.

Its author may choose a server and credentials, but nothing on this machine: no program to run, no file to read, no
proxy, and no unverified connection. A field that is not on the short list of known fields is refused by name, so that
fields of future versions are refused as well. Errors quote no value.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import yaml

from kardinal.kube.connection import ClusterAccess
from kardinal.kube.contexts import ConfigEntry, NoContext, Unusable, choose_context
from kardinal.kube.errors import ConfigError
from kardinal.kube.kubeconfig import MALFORMED, access_of

__all__ = ["embedded_access"]

_CLUSTER = frozenset({"server", "certificate-authority-data", "tls-server-name"})
_SIZE = 256 << 10
_VALUES = 2_000
_DEPTH = 16
_USER = frozenset({"token", "client-certificate-data", "client-key-data", "username", "password"})


def embedded_access(text: str) -> ClusterAccess:
    """Return the access of the current context of a kubeconfig; blocks for some milliseconds.

    Raises `ConfigError` with the problem.
    """
    _check_bounds(text)
    with tempfile.TemporaryDirectory(prefix="kardinal-") as directory:
        path = Path(directory) / "kubeconfig"
        path.write_text(text)
        try:
            context = choose_context([path], None)
            _refuse_others(context.cluster, _CLUSTER)
            _refuse_others(context.user, _USER)
            if not str(context.cluster.settings.get("server", "")).startswith("https://"):
                raise Unusable(f"server of {context.cluster.title} is no https URL")
            return access_of(context)
        except (NoContext, Unusable) as error:
            said = str(error).replace(str(path), "it")
            raise ConfigError(f"the kubeconfig cannot be used: {said}") from None
        except MALFORMED:
            raise ConfigError(
                "the kubeconfig cannot be used: it is not well-formed, or its certificates are not"
            ) from None


def _check_bounds(text: str) -> None:
    """Refuse a kubeconfig that is expensive to load: too long, too many values, too deep, or with aliases."""
    if len(text) > _SIZE:
        raise ConfigError(f"the kubeconfig cannot be used: it has more than {_SIZE:,} characters")
    depth = 0
    try:
        for count, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if count > _VALUES or depth > _DEPTH or isinstance(event, yaml.AliasEvent):
                most = f"more than {_VALUES:,} values or {_DEPTH} levels, or an alias"
                raise ConfigError(f"the kubeconfig cannot be used: it has {most}")
    except yaml.YAMLError:
        return  # The parser of the kubeconfig reports this error.


def _refuse_others(entry: ConfigEntry, allowed: frozenset[str]) -> None:
    for key, value in entry.settings.items():
        if key not in allowed and value:
            known = ", ".join(sorted(allowed))
            raise Unusable(f"{key} of {entry.title} is not accepted here; embed what is needed as {known}")
