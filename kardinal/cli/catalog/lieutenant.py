"""Read the API of a Lieutenant: its clusters and tenants as documents of kardinal.

    GET /clusters        [{"id": "c-one", "tenant": "t-acme", "displayName": "One", "facts": {"cloud": "exoscale", …},
                           "dynamicFacts": {…}, "gitRepo": {"url": "ssh://git@host/acme/c-one.git"}}]
    GET /tenants/t-acme  {"id": "t-acme", "displayName": "Acme Ltd", "gitRepo": {"url": "ssh://…/t-acme.git"},
                          "globalGitRepoURL": "ssh://…/global.git", "globalGitRepoRevision": "v12"}

A cluster's own `globalGitRepoRevision` and `tenantGitRepoRevision` go before those of its tenant.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import ClientError, ClientSession, ClientTimeout, DummyCookieJar, InvalidURL
from yarl import URL

from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.bounded.connections import BoundedConnector
from kardinal.catalog.kinds import CATALOG_CLUSTER, CATALOG_TENANT
from kardinal.cli.errors import CommandError
from kardinal.objects import JsonObject

__all__ = ["documents_of", "fetch_documents"]

REQUEST_SECONDS: Final = 30.0
AT_ONCE: Final = 8
LIMITS: Final = JsonLimits(size=16 << 20, containers=200_000, pieces=2_000_000)
"""The limits of an answer: the list has all facts of all clusters."""

_TENANT_NAME: Final = re.compile(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?")
_OWN_MACHINE: Final = ("localhost", "127.0.0.1", "::1")

FOREIGN = ForeignBytes(
    "answers of a Lieutenant",
    of="Lieutenant that the caller names",
    size=mebibytes(LIMITS.size),
    unpacked="asked for uncompressed, never unpacked",
    structure=LIMITS.structure,
    time=f"{REQUEST_SECONDS:g} s a request",
    held=f"{AT_ONCE} at once, in a program of one person",
    decoded="in a program of one person",
    tests=("cli/catalog/test_import.py::test_an_answer_without_an_end_is_given_up",),
)


class WrongAnswer(CommandError):
    """An answer without a field that a document needs."""


async def fetch_documents(url: str, *, token: str) -> list[JsonObject]:
    """Return the documents of all clusters and tenants of a Lieutenant. Raises `CommandError`."""
    base = _base(url, with_token=bool(token))
    # The token goes to this address alone: neither a proxy nor a redirect decides where.
    async with ClientSession(
        connector=BoundedConnector(limit=AT_ONCE),
        cookie_jar=DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
        timeout=ClientTimeout(total=REQUEST_SECONDS),
        headers={"Authorization": f"Bearer {token}"} if token else {},
    ) as session:
        clusters = await _get(session, base / "clusters")
        if not isinstance(clusters, list) or not all(isinstance(each, dict) for each in clusters):
            raise WrongAnswer(f"{base / 'clusters'} is no list of clusters", remedy="Give the URL of the API.")
        names = sorted({_tenant_name(cluster) for cluster in clusters})
        tenants = await asyncio.gather(*(_get(session, base / "tenants" / name) for name in names))
        return documents_of(clusters, dict(zip(names, tenants, strict=True)))


def documents_of(clusters: list[JsonObject], tenants: Mapping[str, Any]) -> list[JsonObject]:
    """Return CatalogTenants and then CatalogClusters, each sorted by name. Raises `WrongAnswer`."""
    found = [_tenant(name, tenant) for name, tenant in sorted(tenants.items())]
    return [*found, *(_cluster(each, tenants[_text(each, "tenant")]) for each in sorted(clusters, key=_name))]


def _tenant(name: str, tenant: Any) -> JsonObject:
    if not isinstance(tenant, dict) or _name(tenant) != name:
        raise WrongAnswer(f"tenant {name}: the answer is another tenant, or none")
    return _document(
        CATALOG_TENANT.kind,
        name,
        {
            "displayName": _text(tenant, "displayName", required=False),
            "global": _repository(_text(tenant, "globalGitRepoURL"), tenant, "globalGitRepoRevision"),
            "inventory": _repository(_url(tenant), tenant, "tenantGitRepoRevision"),
        },
    )


def _cluster(cluster: JsonObject, tenant: JsonObject) -> JsonObject:
    spec: JsonObject = {
        "displayName": _text(cluster, "displayName", required=False),
        "tenant": _text(cluster, "tenant"),
        "facts": cluster.get("facts") or {},
    }
    if cluster.get("dynamicFacts"):
        spec["dynamicFacts"] = cluster["dynamicFacts"]
    if cluster.get("globalGitRepoRevision"):
        spec["global"] = _repository(_text(tenant, "globalGitRepoURL"), cluster, "globalGitRepoRevision")
    if cluster.get("tenantGitRepoRevision"):
        spec["inventory"] = _repository(_url(tenant), cluster, "tenantGitRepoRevision")
    if cluster.get("gitRepo"):
        spec["catalog"] = {"url": _url(cluster)}
    return _document(CATALOG_CLUSTER.kind, _name(cluster), spec)


def _document(kind: str, name: str, spec: JsonObject) -> JsonObject:
    api_version = CATALOG_TENANT.api_version
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _repository(url: str, found: JsonObject, revision: str) -> JsonObject:
    named = _text(found, revision, required=False)
    return {"url": url, "revision": named} if named else {"url": url}


def _tenant_name(cluster: JsonObject) -> str:
    """Return the name of a cluster's tenant, which becomes a part of a URL."""
    name = _text(cluster, "tenant")
    if not _TENANT_NAME.fullmatch(name):
        raise WrongAnswer(f"{_name(cluster)} has a tenant whose name is not of a-z, 0-9 and -")
    return name


def _name(found: JsonObject) -> str:
    return _text(found, "id")


def _url(found: JsonObject) -> str:
    repository = found.get("gitRepo")
    if not isinstance(repository, dict):
        raise WrongAnswer(f"{_name(found)} has no gitRepo")
    return _text(repository, "url", of=_name(found))


def _text(found: JsonObject, field: str, *, required: bool = True, of: str = "") -> str:
    value = found.get(field)
    if value is None and not required:
        return ""
    if not isinstance(value, str) or (required and not value):
        subject = of or found.get("id") or "an object"
        raise WrongAnswer(f"{subject} has no {field}")
    return value


def _base(url: str, *, with_token: bool) -> URL:
    try:
        base = URL(url)
    except ValueError:
        base = URL()
    if base.scheme not in ("https", "http") or not base.host or base.user is not None:
        raise CommandError("--lieutenant has to be a URL", remedy="Write it as https://api.syn.example.com.")
    if with_token and base.scheme == "http" and base.host not in _OWN_MACHINE:
        raise CommandError("the token would travel in the clear", remedy="Give an https:// address.")
    return base


async def _get(session: ClientSession, url: URL) -> Any:
    try:
        async with session.get(url, allow_redirects=False) as answer:
            body = bytearray()
            async for chunk in answer.content.iter_any():
                body += chunk
                if len(body) > LIMITS.size:
                    raise WrongAnswer(f"{url} answers with more than {LIMITS.size:,} bytes")
            if answer.status == 401:
                raise CommandError(f"{url} refuses the token", remedy="Name a file with a valid one by --token-file.")
            if answer.status != 200:
                raise WrongAnswer(f"{url} answers {answer.status}")
    except InvalidURL:
        raise CommandError("--lieutenant has to be a URL") from None
    except TimeoutError:
        raise CommandError(f"{url} has not answered within {REQUEST_SECONDS:g} s") from None
    except (ClientError, OSError) as error:
        raise CommandError(f"{url} has not answered: {type(error).__name__}") from None
    try:
        return decode(bytes(body), LIMITS)
    except (NotJson, OverLimit) as error:
        raise WrongAnswer(f"{url}: {error}") from None
