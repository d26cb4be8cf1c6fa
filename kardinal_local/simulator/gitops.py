"""Simulate a GitOps tool: follow the branch of each Pipeline, and apply the rendered objects of its environments.

An environment is rendered if its inputs have changed, and an object is applied if its rendered form has changed.
Deployments have an annotation with the commit that changed them last, so a commit that changes one environment leaves
the objects of the other environments alone.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from datetime import timedelta

from kardinal.clock import Clock
from kardinal.git import Repositories, Repository
from kardinal.kube import AlreadyExists, ApiError, Client, Conflict, ServerError, TooManyRequests
from kardinal.objects import CONFIG_MAP, DEPLOYMENT, NAMESPACE, SECRET, SERVICE_ACCOUNT, JsonObject, Key, ResourceType
from kardinal.objects.errors import KardinalError
from kardinal.promotion.api import Pipeline
from kardinal.promotion.kinds import PIPELINE, PROMOTION_STEP
from kardinal.runtime import Channel, Manager, Result, Watch
from kardinal.runtime.predicates import created
from kardinal_local.simulator.credentials import credentials_for
from kardinal_local.simulator.environments import PipelineState, Stale
from kardinal_local.simulator.failures import RenderFailures
from kardinal_local.simulator.kustomization import Rendered, RenderError
from kardinal_local.simulator.limits import SimulationLimits, limits_of
from kardinal_local.simulator.placement import Placed, place
from kardinal_local.simulator.renderer import DirectoryRenderer, Rendering

__all__ = ["COMMIT_ANNOTATION", "FIELD_MANAGER", "GitOps"]

COMMIT_ANNOTATION = "simulator.kardinal.io/commit"
FIELD_MANAGER = "kardinal-simulator"
REMOTE_POLL = timedelta(seconds=30)
"""The interval between two fetches of a remote repository; a local repository is watched instead."""
RETRY = timedelta(seconds=10)
"""The time until an unreachable repository is tried again."""

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
    """The reconciler of Pipelines: applies the branch of a Pipeline to the namespaces of its environments."""

    def __init__(
        self, manager: Manager, client: Client, repositories: Repositories, *, renderer: DirectoryRenderer, clock: Clock
    ) -> None:
        self._client = client
        self._repositories = repositories
        self._renderer = renderer
        self._recorder = manager.recorder
        self._limits = SimulationLimits(manager.status, clock)
        self._pipelines = manager.informer(PIPELINE)
        steps = manager.informer(PROMOTION_STEP)
        self._failures = RenderFailures(steps, manager.recorder)
        self._moved = Channel()
        self._states: dict[Key, PipelineState] = {}
        self._namespaces: set[str] = set()
        new_steps = Watch(steps, map=_to_pipeline, when=created)
        manager.controller("gitops", self, [Watch(self._pipelines), new_steps, self._moved])

    def close(self) -> None:
        for key in list(self._states):
            self._forget(key)

    async def reconcile(self, key: Key) -> Result:
        stored = self._pipelines.get(key.namespace, key.name)
        if stored is None:
            self._forget(key)
            return Result()
        pipeline = Pipeline.model_validate(stored)
        state = self._states.setdefault(key, PipelineState())
        try:
            repository = await self._open(pipeline)
            self._follow(key, state, repository)
            head = await repository.head(pipeline.spec.git.branch)
            await self._render(stored, pipeline, state, repository, head.commit)
        except KardinalError as error:
            self._warn(stored, "BranchNotFollowed", str(error))
            branch = pipeline.spec.git.branch
            await self._limits.tell(stored, [("BranchNotFollowed", f"branch {branch} is not followed: {error}")])
            return Result(requeue_after=RETRY)
        for name, known in state.known.items():
            self._failures.tell(stored, name, known)
        items = {name: known.items for name, known in state.known.items()}
        placed = place(pipeline.spec.environments, items)
        self._note(stored, state, placed)
        for each in placed:
            await self._apply(stored, state, each)
        await self._limits.tell(stored, list(limits_of(pipeline, state)))
        return Result() if repository.local else Result(requeue_after=REMOTE_POLL)

    async def _open(self, pipeline: Pipeline) -> Repository:
        git = pipeline.spec.git
        namespace = pipeline.metadata.namespace
        credentials = await credentials_for(self._client, self._repositories.parse(git.url), git, namespace)
        return self._repositories.open(git.url, credentials, owner=namespace)

    def _follow(self, key: Key, state: PipelineState, repository: Repository) -> None:
        if state.url == repository.url:
            return
        if state.subscription:
            state.subscription.close()
        state.subscription = repository.watch(lambda: self._moved.push(key)) if repository.local else None
        state.url = repository.url

    def _forget(self, key: Key) -> None:
        state = self._states.pop(key, None)
        if state and state.subscription:
            state.subscription.close()

    async def _render(
        self, stored: JsonObject, pipeline: Pipeline, state: PipelineState, repository: Repository, commit: str
    ) -> None:
        environments = pipeline.spec.environments
        if state.checked(commit, environments):
            return
        stale = await repository.inspect(commit, lambda tree: state.stale(tree, commit, environments))
        if not stale:
            return
        async with self._renderer.at(repository, commit) as rendering:
            runs = (self._render_one(stored, state, rendering, each, commit) for each in stale)
            failures = [failure for failure in await asyncio.gather(*runs, return_exceptions=True) if failure]
        if failures:
            raise failures[0]

    async def _render_one(
        self, stored: JsonObject, state: PipelineState, rendering: Rendering, stale: Stale, commit: str
    ) -> None:
        outcome: Rendered | RenderError
        try:
            outcome = await rendering.render(stale.path, stale.inputs)
        except RenderError as error:
            outcome = error
        state.note(stale, commit, outcome)
        if isinstance(outcome, RenderError):
            return
        known = state.known[stale.environment]
        known.unknown = sorted(outcome.unknown)
        known.not_applied = sorted({item["kind"] for item in outcome.objects if _kind(item) is None})
        for field in outcome.unknown:
            note = f"{stale.environment}: {field} is not understood without kustomize or kubectl on PATH"
            self._warn(stored, "FieldNotRendered", note)
        for kind in known.not_applied:
            self._warn(stored, "KindNotApplied", f"{stale.environment}: the simulator does not apply {kind}")

    async def _apply(self, stored: JsonObject, state: PipelineState, placed: Placed) -> None:
        kind = _kind(placed.item.body)
        if kind is None:
            return
        await self._ensure_namespace(placed.namespace)
        metadata = {**placed.item.body["metadata"], "namespace": placed.namespace}
        name = f"{kind.kind}/{metadata['name']}"
        if state.applied.get((placed.namespace, name)) == placed.item.digest:
            return
        if kind is DEPLOYMENT:
            commit = state.known[placed.environment].commit
            metadata["annotations"] = {**(metadata.get("annotations") or {}), COMMIT_ANNOTATION: commit}
        item = {**placed.item.body, "metadata": metadata}
        try:
            await self._client.apply(kind, item, field_manager=FIELD_MANAGER, force=True)
        except _PASSING:
            # The whole run is tried again, because otherwise nothing would start a run before the branch moves.
            raise
        except ApiError as error:
            self._warn(stored, "ApplyFailed", f"{placed.namespace}: {name}: {error.message}")
            return
        state.applied[placed.namespace, name] = placed.item.digest

    async def _ensure_namespace(self, namespace: str) -> None:
        if namespace in self._namespaces:
            return
        body = {"apiVersion": NAMESPACE.api_version, "kind": NAMESPACE.kind, "metadata": {"name": namespace}}
        with suppress(AlreadyExists):
            await self._client.create(NAMESPACE, body, field_manager=FIELD_MANAGER)
        self._namespaces.add(namespace)

    def _note(self, stored: JsonObject, state: PipelineState, placed: list[Placed]) -> None:
        """Write one Event for each object that is applied to another namespace than its kustomization names."""
        notes = dict.fromkeys(each.note for each in placed if each.note)
        for note in notes:
            if note not in state.noted:
                self._warn(stored, "NamespaceDiffers", note)
        state.noted = set(notes)

    def _warn(self, pipeline: JsonObject, reason: str, note: str) -> None:
        self._recorder.event(pipeline, type="Warning", reason=reason, note=note, action="Simulate")


def _kind(item: JsonObject) -> ResourceType | None:
    return _APPLIED.get((item.get("apiVersion", ""), item.get("kind", "")))


def _to_pipeline(step: JsonObject) -> list[Key]:
    return [Key(step["metadata"]["namespace"], step["spec"]["pipeline"])]
