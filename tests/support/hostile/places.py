"""The places of kardinal that take bytes of others, and how each is brought to talk with a hostile one.

A place begins one of its behaviours with the resources that a tenant may write: a Pipeline on a hostile host, a Bundle
from a hostile registry. They are deleted when it is over.
"""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from kardinal.kube import Client, NotFound
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal_local import sample
from tests.support.hostile.answers import ANSWERS
from tests.support.hostile.beside import Beside
from tests.support.hostile.clients import CLIENTS, Attack
from tests.support.hostile.packs import PACKS
from tests.support.hostile.repositories import CHARTS, FILES, KUSTOMIZATIONS, OBJECTS, honest, of_files
from tests.support.hostile.server import address, slug
from tests.support.objects import bundle, pipeline
from tests.support.webhook import HMAC_KEY, webhook_secret

__all__ = ["PLACES", "Place", "Said"]

Said = Callable[[], Awaitable[str]]
Begun = AbstractAsyncContextManager[Said]


@dataclass(frozen=True, slots=True)
class Place:
    """`begin` starts a behaviour, until its block ends, and yields how to ask what the program says of it.

    `part`: behaviours that together cost most, where there is little time.
    """

    name: str
    behaviours: tuple[str, ...]
    begin: Callable[[Beside, str, int], Begun]
    part: tuple[str, ...]


def _secret(name: str, namespace: str, *, label: str, host: str = "", **data: str) -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": namespace, "labels": {LABEL_CREDENTIALS: label}}
    if host:
        metadata["annotations"] = {ANNOTATION_HOSTS: host}
    encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": encoded}


def _dev(**fields: Any) -> JsonObject:
    health = {"type": "resource", "resource": {"name": sample.APP, "namespace": "dev"}, "timeout": "10m"}
    return {"name": "dev", "path": "environments/dev", "health": health, **fields}


def _app(name: str, url: str, namespace: str, environment: JsonObject | None = None, **git: Any) -> JsonObject:
    made = pipeline(url, name=name, provider="git", environments=[environment or _dev()], namespace=namespace)
    made["spec"]["git"] |= git
    return made


@asynccontextmanager
async def _promoting(beside: Beside, way: JsonObject, *, image: str = sample.IMAGE) -> AsyncIterator[Said]:
    """Promote one Bundle through a Pipeline, and delete both at the end."""
    name = way["metadata"]["name"]
    namespace = way["metadata"]["namespace"]
    await beside.client.create(PIPELINE, way)
    await beside.client.create(
        BUNDLE, bundle(f"{name}-1", pipeline=name, image=image, tag="2.0.0", namespace=namespace)
    )

    async def said() -> str:
        return await _said(beside.client, namespace, name)

    try:
        yield said
    finally:
        for kind, each in ((BUNDLE, f"{name}-1"), (PIPELINE, name)):
            with suppress(NotFound):
                await beside.client.delete(kind, each, namespace)


async def _said(client: Client, namespace: str, name: str) -> str:
    """Return what a tenant reads of its promotion: of the step, else of the Bundle, else of the Pipeline."""
    for step in (await client.list(PROMOTION_STEP, namespace)).items:
        status = step.get("status") or {}
        if step["spec"]["bundleRef"] == f"{name}-1" and status.get("message"):
            return f"{status.get('state', '')}: {status['message']}"
    status = (await client.get(BUNDLE, f"{name}-1", namespace)).get("status") or {}
    told = [each.get("message") for each in status.get("artifacts") or () if each.get("message")]
    told += [each["message"] for each in status.get("conditions") or () if each.get("message")]
    ways = (await client.get(PIPELINE, name, namespace)).get("status") or {}
    told += [each["message"] for each in ways.get("conditions") or () if each["status"] == "False"]
    return f"{status.get('phase', '')}: {told[0] if told else status.get('message', '')}"


@asynccontextmanager
async def _webhook(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
    namespace = await beside.namespace("hostile-webhook")
    secret = _secret("hooks", namespace, label=CREDENTIALS_WEBHOOK, webhookSecret=HMAC_KEY)
    for each in (webhook_secret(namespace=namespace), secret):
        await beside.client.apply(SECRET, each, field_manager="test", force=True)
    url = f"http://{beside.http('silence')}/of-nothing/app.git"
    way = _app("app", url, namespace, provider="gitea", webhookSecretRef={"name": "hooks"})
    await beside.client.apply(PIPELINE, way, field_manager="test", force=True)
    chosen = random.Random(f"{seed} {behaviour}")
    attack = Attack((beside.api, beside.probes, beside.metrics)[: 3 if "1,010" in behaviour else 1], namespace, chosen)
    running = asyncio.ensure_future(CLIENTS[behaviour](attack))

    async def said() -> str:
        return ", ".join(f"{line} ({count})" for line, count in attack.answers.most_common(3)) or "connections closed"

    try:
        yield said
    finally:
        running.cancel()
        await asyncio.wait([running])


@asynccontextmanager
async def _api_of_host(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
    namespace = await beside.namespace("hostile-api")
    await _git_secret(beside, namespace, beside.http(behaviour))
    await asyncio.to_thread(honest, beside.root / slug(behaviour) / "app.git")
    url = f"http://{beside.http(behaviour)}/{slug(behaviour)}/app.git"
    environment = _dev(approval="pr-review")
    way = _app(
        slug(behaviour), url, namespace, environment, provider="gitea", secretRef={"name": f"git-{address(behaviour)}"}
    )
    async with _promoting(beside, way) as said:
        yield said


async def _git_secret(beside: Beside, namespace: str, host: str) -> None:
    name = f"git-{host.partition(':')[0]}"
    secret = _secret(name, namespace, label=CREDENTIALS_GIT, host=host, username="robot", token="t-of-a-tenant")
    await beside.client.apply(SECRET, secret, field_manager="test", force=True)


@asynccontextmanager
async def _registry(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
    namespace = await beside.namespace("hostile-registry")
    path = beside.directory / "registry" / slug(behaviour) / "app.git"
    await asyncio.to_thread(honest, path)
    way = _app(slug(behaviour), path.as_uri(), namespace)
    async with _promoting(beside, way, image=f"{beside.http(behaviour)}/{slug(behaviour)}/app") as said:
        yield said


@asynccontextmanager
async def _custom_step(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
    namespace = await beside.namespace("hostile-step")
    path = beside.directory / "step" / slug(behaviour) / "app.git"
    await asyncio.to_thread(honest, path)
    asking = {"uses": "run-tests", "config": {"url": f"http://{beside.http(behaviour)}/{slug(behaviour)}/validate"}}
    way = _app(slug(behaviour), path.as_uri(), namespace, _dev(steps=_steps(asking)))
    async with _promoting(beside, way) as said:
        yield said


def _steps(*between: JsonObject) -> list[JsonObject]:
    before = [{"uses": "git-clone"}, {"uses": "kustomize-set-image"}]
    return [*before, *between, *({"uses": each} for each in ("git-commit", "git-push", "health-check"))]


@asynccontextmanager
async def _cluster(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
    namespace = await beside.namespace("hostile-cluster")
    name = slug(behaviour)
    path = beside.directory / "cluster" / name / "app.git"
    await asyncio.to_thread(honest, path)
    authority = base64.b64encode(await asyncio.to_thread(beside.certificate.read_bytes)).decode()
    cluster = {"server": f"https://{beside.https}/{name}", "certificate-authority-data": authority}
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        "clusters": [{"name": "k", "cluster": cluster}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    secret = _secret(f"far-{name}", namespace, label="kubeconfig", kubeconfig=orjson.dumps(config).decode())
    await beside.client.apply(SECRET, secret, field_manager="test", force=True)
    health = {"type": "resource", "cluster": f"far-{name}", "timeout": "10m"}
    async with _promoting(beside, _app(name, path.as_uri(), namespace, _dev(health=health))) as said:
        yield said


@asynccontextmanager
async def _transfer(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
    namespace = await beside.namespace("hostile-transfer")
    url = f"http://{beside.http(behaviour)}/{slug(behaviour)}/none.git"
    async with _promoting(beside, _app(slug(behaviour), url, namespace)) as said:
        yield said


@asynccontextmanager
async def _objects(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
    namespace = await beside.namespace("hostile-objects")
    name = slug(behaviour).replace(",", "")
    path = beside.root / f"of-{name}" / "app.git"
    await asyncio.to_thread(honest, path)
    await asyncio.to_thread(OBJECTS[behaviour], path)
    async with _promoting(
        beside, _app(f"o-{name}", f"http://{beside.http('silence')}/of-{name}/app.git", namespace)
    ) as said:
        yield said


def _repository_place(
    kind: str, cases: Mapping[str, dict[str, str]], part: tuple[str, ...], *between: JsonObject
) -> Place:
    """Return a place whose repositories have hostile files, on which steps of a promotion work."""

    @asynccontextmanager
    async def begin(beside: Beside, behaviour: str, seed: int) -> AsyncIterator[Said]:
        namespace = await beside.namespace(f"hostile-{slug(kind)}")
        name = slug(behaviour)
        path: Path = beside.directory / slug(kind) / name / "app.git"
        await asyncio.to_thread(of_files, path, cases[behaviour])
        async with _promoting(beside, _app(name, path.as_uri(), namespace, _dev(steps=_steps(*between)))) as said:
            yield said

    return Place(kind, tuple(cases), begin, part)


_OUT = {"out": "rendered.yaml"}

_BODIES = ("gzip bomb", "nested", "endless body", "provisional answers", "redirect inside")

PLACES = (
    Place(
        "webhook and probes",
        tuple(CLIENTS),
        _webhook,
        ("1,010 silent sockets", "large bodies that stall", "many keys, of CI", "beyond its length"),
    ),
    Place("API of a host", tuple(ANSWERS), _api_of_host, _BODIES),
    Place("registry", tuple(ANSWERS), _registry, _BODIES),
    Place("custom step", tuple(ANSWERS), _custom_step, _BODIES),
    Place("cluster of health", tuple(ANSWERS), _cluster, ("gzip bomb", "containers", "endless line", *_BODIES[3:])),
    Place(
        "Git transfer",
        tuple(PACKS),
        _transfer,
        ("endless pack", "growing deltas", "endless references", "endless headers", "redirect inside"),
    ),
    Place("Git objects", tuple(OBJECTS), _objects, ("directory of a million entries", "file of 256 MiB")),
    _repository_place("edited files", FILES, ("nested", "aliases", "costly manifests")),
    _repository_place(
        "kustomize",
        KUSTOMIZATIONS,
        ("many layers", "many files"),
        {"uses": "kustomize-build", "config": _OUT},
    ),
    _repository_place(
        "helm",
        CHARTS,
        ("endless output", "doubling"),
        {"uses": "helm-template", "config": {"chart": "charts/web", **_OUT}},
    ),
)
