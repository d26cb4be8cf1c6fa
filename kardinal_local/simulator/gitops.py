"""Stands in for the GitOps tool: follows the branch of each Pipeline and applies what its directories render to.

Every environment goes into the namespace of its name. An object is applied only when its rendered form changed, and its
Deployments carry the commit that changed them, so that a commit to one environment touches no other.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import timedelta
from typing import Any

import orjson

from kardinal.api import PIPELINE, Pipeline
from kardinal.git import Repositories, Repository, Subscription
from kardinal.kube import AlreadyExists, ApiError, Client, Conflict, ServerError, TooManyRequests
from kardinal.objects import CONFIG_MAP, DEPLOYMENT, NAMESPACE, SECRET, SERVICE_ACCOUNT, JsonObject, Key, ResourceType
from kardinal.objects.errors import KardinalError
from kardinal.runtime import Channel, Manager, Result, Watch
from kardinal_local.simulator.kustomization import Rendered, RenderError
from kardinal_local.simulator.renderer import Renderer

__all__ = ["COMMIT_ANNOTATION", "FIELD_MANAGER", "GitOps"]

COMMIT_ANNOTATION = "simulator.kardinal.io/commit"
FIELD_MANAGER = "kardinal-simulator"
REMOTE_POLL = timedelta(seconds=30)
"""How often the branch of a repository elsewhere is looked at; a local one says itself when it moves."""
RETRY = timedelta(seconds=10)
"""How soon an unreachable repository is tried again."""

_PASSING = (Conflict, ServerError, TooManyRequests)

_APPLIED = {
    (kind.api_version, kind.kind): kind
    for kind in (
        CONFIG_MAP,
        DEPLOYMENT,
        SECRET,
        SERVICE_ACCOUNT,
        ResourceType("", "v1", "Service", "services"),
    )
}


class GitOps:
    """Reconciles each Pipeline's branch into the namespaces of its environments."""

    def __init__(self, manager: Manager, client: Client, repositories: Repositories, *, renderer: Renderer) -> None:
        self._client = client
        self._repositories = repositories
        self._renderer = renderer
        self._recorder = manager.recorder
        self._pipelines = manager.informer(PIPELINE)
        self._moved = Channel()
        self._subscriptions: dict[Key, tuple[str, Subscription]] = {}
        self._applied: dict[tuple[Key, str, str], str] = {}
        self._namespaces: set[str] = set()
        manager.controller("gitops", self, [Watch(self._pipelines), self._moved])

    def close(self) -> None:
        for _, subscription in self._subscriptions.values():
            subscription.close()
        self._subscriptions.clear()

    async def reconcile(self, key: Key) -> Result:
        stored = self._pipelines.get(key.namespace, key.name)
        if stored is None:
            self._forget(key)
            return Result()
        pipeline = Pipeline.model_validate(stored)
        try:
            repository = self._repositories.open(pipeline.spec.git.url)
            self._follow(key, repository)
            head = await repository.head(pipeline.spec.git.branch)
        except KardinalError as error:
            self._warn(stored, "BranchNotFollowed", str(error))
            return Result(requeue_after=RETRY)
        for environment in pipeline.spec.environments:
            path = environment.path or f"environments/{environment.name}"
            try:
                rendered = await self._renderer.render(repository, head.commit, path)
            except RenderError as error:
                self._warn(stored, "RenderFailed", f"{environment.name}: {error}")
                continue
            self._report(stored, environment.name, rendered)
            await self._apply(key, stored, environment.name, rendered, head.commit)
        return Result() if repository.local else Result(requeue_after=REMOTE_POLL)

    def _follow(self, key: Key, repository: Repository) -> None:
        followed = self._subscriptions.get(key)
        if not repository.local or (followed and followed[0] == repository.url):
            return
        if followed:
            followed[1].close()
        self._subscriptions[key] = (repository.url, repository.watch(lambda: self._moved.push(key)))

    def _forget(self, key: Key) -> None:
        if followed := self._subscriptions.pop(key, None):
            followed[1].close()

    async def _apply(self, key: Key, pipeline: JsonObject, namespace: str, rendered: Rendered, commit: str) -> None:
        await self._ensure_namespace(namespace)
        for item in rendered.objects:
            kind = _APPLIED.get((item.get("apiVersion", ""), item.get("kind", "")))
            if kind is None:
                self._warn(pipeline, "KindNotApplied", f"{namespace}: the simulator does not apply {item.get('kind')}")
                continue
            item["metadata"]["namespace"] = namespace
            name = f"{kind.kind}/{item['metadata']['name']}"
            digest = hashlib.sha256(orjson.dumps(item, option=orjson.OPT_SORT_KEYS)).hexdigest()
            if self._applied.get((key, namespace, name)) == digest:
                continue
            if kind is DEPLOYMENT:
                annotations: dict[str, Any] = item["metadata"].setdefault("annotations", {})
                annotations[COMMIT_ANNOTATION] = commit
            try:
                await self._client.apply(kind, item, field_manager=FIELD_MANAGER, force=True)
            except _PASSING:
                # Tried again with all the rest, which nothing else would ask for before the branch moves.
                raise
            except ApiError as error:
                self._warn(pipeline, "ApplyFailed", f"{namespace}: {name}: {error.message}")
                continue
            self._applied[(key, namespace, name)] = digest

    async def _ensure_namespace(self, namespace: str) -> None:
        if namespace in self._namespaces:
            return
        body = {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind, "metadata": {"name": namespace}}
        with suppress(AlreadyExists):
            await self._client.create(NAMESPACE, body, field_manager=FIELD_MANAGER)
        self._namespaces.add(namespace)

    def _report(self, pipeline: JsonObject, environment: str, rendered: Rendered) -> None:
        named = {item["metadata"].get("namespace") for item in rendered.objects} - {None, environment}
        for namespace in sorted(named):
            self._warn(
                pipeline,
                "NamespaceDiffers",
                f"{environment}: the kustomization says namespace {namespace}; the simulator applies to {environment}",
            )
        for field in rendered.unknown:
            self._warn(
                pipeline,
                "FieldNotRendered",
                f"{environment}: {field} is not understood without kustomize or kubectl on PATH",
            )

    def _warn(self, pipeline: JsonObject, reason: str, note: str) -> None:
        self._recorder.event(pipeline, type="Warning", reason=reason, note=note, action="Simulate")
