"""Secret references such as `?{vaultkv:t-acme/c-one/web/password}`: found in parameters, written as files for kapitan.

A reference names a secret of Vault and a key in it. `refs/t-acme/c-one/web/password` tells `kapitan refs --reveal`,
which runs in the cluster, where the secret is; in manifests stands a token with a hash of that file. The secret itself
is in no repository and never here.
"""

from __future__ import annotations

import base64
import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kardinal.catalog.errors import CatalogError, Where
from kardinal.catalog.values import Merged
from kardinal.catalog.worker.emit import filtered
from kardinal.objects.text import cut, escaped

__all__ = ["ReferenceFiles", "reference_files"]

_PATH = re.compile(r"[\w\-.@=/]+")
"""The characters that kapitan finds in a reference."""
_TYPE = "vaultkv"
_HASH = 8
_SETTINGS = "kapitan.secrets.vaultkv"
_ADDRESS = "secret_management.vault_addr"


@dataclass(frozen=True, slots=True)
class ReferenceFiles:
    """`files`: content by path below `refs/`. `tokens`: by reference, as in parameters, that in manifests."""

    files: Mapping[str, bytes]
    tokens: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Found:
    text: str
    path: str
    where: Where


def reference_files(
    cluster: Merged,
    instances: Mapping[str, tuple[str, Merged]],
    *,
    prefixes: Sequence[str] = (),
) -> ReferenceFiles:
    """Return the files and tokens of all references of a catalog.

    `cluster`: the first node, whose parameters are searched but for those of components. `instances`: component and
    node of each; only the component's own parameters are searched. `prefixes`: allowed beginnings of paths; empty
    allows all. Raises `CatalogError`, for example if there are references and no address of Vault.
    """
    found = list(_all(cluster, instances))
    if not found:
        return ReferenceFiles({}, {})
    settings = _settings(cluster, found[0])
    files: dict[str, bytes] = {}
    tokens: dict[str, str] = {}
    for reference in found:
        _check(reference, prefixes)
        path = reference.path
        secret, _, key = path.rpartition("/")
        data = base64.b64encode(f"{secret}:{key}".encode()).decode()
        files[path] = filtered({"data": data, "encoding": "original", "type": _TYPE, "vault_params": settings})
        digest = hashlib.sha256(f"{path}{data}".encode()).hexdigest()[:_HASH]
        tokens[reference.text] = f"?{{{_TYPE}:{path}:{digest}}}"
    _check_directories(files, found)
    return ReferenceFiles(dict(sorted(files.items())), tokens)


def _all(cluster: Merged, instances: Mapping[str, tuple[str, Merged]]) -> Iterator[_Found]:
    own = {_key(component) for component, _ in instances.values()}
    for name, value in cluster.parameters.items():
        if name not in own:
            yield from _in(value, name, "")
    for instance, (component, node) in sorted(instances.items()):
        yield from _in(node.parameters.get(_key(component)), _key(component), instance)


def _key(component: str) -> str:
    """`cert-manager` → `cert_manager`, the parameters of that component."""
    return component.replace("-", "_")


def _in(value: Any, parameter: str, instance: str) -> Iterator[_Found]:
    match value:
        case str():
            for reference in _references(value):
                yield _read(reference, Where(instance=instance, parameter=parameter))
        case dict():
            for key, item in value.items():
                yield from _in(item, f"{parameter}.{key}", instance)
        case list():
            for index, item in enumerate(value):
                yield from _in(item, f"{parameter}[{index}]", instance)


def _references(text: str) -> Iterator[str]:
    """Yield each text from `?{` to the next `}`. A regular expression would search to the end for each `?{`."""
    at = 0
    while (begin := text.find("?{", at)) >= 0 and (end := text.find("}", begin)) >= 0:
        if end > begin + 2:
            yield text[begin : end + 1]
        at = end + 1


def _read(reference: str, where: Where) -> _Found:
    kind, _, rest = reference[2:-1].partition(":")
    if not rest:
        raise CatalogError(
            "invalid",
            f"the secret reference {_shown(reference)} has no path",
            where=where,
            remedy="Write ?{vaultkv:path/key}",
        )
    if kind != _TYPE:
        raise CatalogError(
            "refused",
            f"the secret reference {_shown(reference)} is of type {_shown(kind)}",
            where=where,
            remedy="Use vaultkv; other types would need a credential, or put the secret into Git",
        )
    return _Found(reference, rest.partition(":")[0], where)


def _check(reference: _Found, prefixes: Sequence[str]) -> None:
    path = reference.path
    parts = path.split("/")
    if len(parts) < 2:
        raise CatalogError(
            "invalid",
            f"the secret reference {_shown(reference.text)} names no key",
            where=reference.where,
            remedy="Write ?{vaultkv:path/key}",
        )
    if not _PATH.fullmatch(path) or not {"", ".", ".."}.isdisjoint(parts):
        raise CatalogError(
            "refused",
            f"the path of the secret reference {_shown(reference.text)} leads elsewhere or has an unusual character",
            where=reference.where,
            remedy="Write names of letters, digits, dots and dashes, separated by single slashes",
        )
    if prefixes and not path.startswith(tuple(prefixes)):
        raise CatalogError(
            "refused",
            f"the secret reference {_shown(reference.text)} is outside of the tenant's paths",
            where=reference.where,
            remedy=f"Begin the path with {' or '.join(prefixes)}, or extend the tenant's refPrefixes",
        )


def _check_directories(files: Mapping[str, bytes], found: Sequence[_Found]) -> None:
    for reference in found:
        parent = posixpath.dirname(reference.path)
        while parent:
            if parent in files:
                raise CatalogError(
                    "invalid",
                    f"the secret reference {_shown(reference.text)} needs a directory where another one has a file",
                    where=reference.where,
                    remedy=f"Rename the key, or the path of the reference to {parent}",
                )
            parent = posixpath.dirname(parent)


def _settings(cluster: Merged, first: _Found) -> dict[str, Any]:
    """Return the parameters of Vault: kapitan's, completed with those of `secret_management`."""
    kapitan = _object(_object(_object(cluster.parameters.get("kapitan")).get("secrets")).get(_TYPE))
    management = _object(cluster.parameters.get("secret_management"))
    settings = {"mount": management.get("vault_mount") or "kv", **kapitan}
    if "VAULT_ADDR" not in settings and management.get("vault_addr"):
        settings["VAULT_ADDR"] = management["vault_addr"]
    if not settings.get("VAULT_ADDR"):
        raise CatalogError(
            "invalid",
            f"the secret reference {_shown(first.text)} needs the address of Vault",
            where=first.where,
            remedy=f"Set {_SETTINGS}.VAULT_ADDR or {_ADDRESS} in the hierarchy",
        )
    return settings


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _shown(text: str) -> str:
    return escaped(cut(text, 200))
