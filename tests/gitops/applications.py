"""Applications that are promoted and deployed for real: each has a repository, a Pipeline and an object of Flux."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from kardinal.objects import JsonObject, ResourceType
from kardinal.promotion.api import names
from kardinal.promotion.kinds import BUNDLE, PIPELINE, PROMOTION_STEP
from kardinal_agent.health.detection import GIT_REPOSITORY
from kardinal_agent.health.flux_common import KUSTOMIZATION
from tests.gitops.flux import kustomization_spec
from tests.gitops.installation import Installation
from tests.support.names import TEAM
from tests.support.objects import bundle, environment, pipeline
from tests.support.repository import GitRepository, create_repository

__all__ = ["FIRST", "Application", "deployment", "image_of"]

PATIENCE = 180.0
"""Seconds until a promotion has come to where it should."""

FIRST = "1.0.0"
"""The version that runs before anything is promoted."""

_LOOK_AGAIN = 0.05
"""Seconds."""


def image_of(name: str) -> str:
    """Return the repository of the image of an application."""
    return f"registry.example.com/{name}"


def deployment(name: str, **spec: object) -> JsonObject:
    """Return a Deployment as it stands in the repository, which gives up soon."""
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": image_of(name)}]}}
    settings: JsonObject = {"replicas": 2, "progressDeadlineSeconds": 5, "selector": {"matchLabels": labels}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {**settings, "template": template, **spec},
    }


class Application:
    """One application; its environment, the namespace of that and its objects of Flux have its name.

    `health` and other fields are those of its environment. `pipelines_from` is the annotation of the namespace of its
    objects of Flux, `interval` that of its source.
    """

    def __init__(
        self,
        installation: Installation,
        name: str,
        *manifests: JsonObject,
        health: JsonObject | None = None,
        wait: bool = False,
        pipelines_from: str = "",
        interval: str = "1h",
        **fields: Any,
    ) -> None:
        self.name = name
        self.tools = f"{name}-flux"
        self.cluster = installation.cluster
        self.repository = self._make_repository(installation, manifests)
        self.cluster.namespace(name)
        self.cluster.namespace(self.tools, **({"kardinal.io/pipelines-from": pipelines_from} if pipelines_from else {}))
        self._deploy(wait=wait, interval=interval)
        proof = {"failureGrace": "2s", "timeout": "100s", **(health or {})}
        made = environment(name, health=proof, **fields)
        self.cluster.apply(PIPELINE, pipeline(self.repository, name=name, environments=[made]))

    def _make_repository(self, installation: Installation, manifests: Sequence[JsonObject]) -> GitRepository:
        files = {_file_of(manifest): yaml.safe_dump(manifest) for manifest in manifests}
        images = [{"name": image_of(self.name), "newTag": FIRST}]
        head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
        contents = {"kustomization.yaml": yaml.safe_dump({**head, "resources": [*files], "images": images}), **files}
        return create_repository(
            installation.directory / f"{self.name}.git",
            {f"environments/{self.name}/{path}": text for path, text in contents.items()},
        )

    def _deploy(self, *, wait: bool, interval: str) -> None:
        """Have Flux apply the repository, and return when it has for the first time."""
        metadata = {"name": self.name, "namespace": self.tools}
        source = {"url": self.repository.url, "ref": {"branch": "main"}, "interval": interval}
        self.cluster.apply(GIT_REPOSITORY, {"metadata": metadata, "spec": source})
        spec = kustomization_spec(path=f"./environments/{self.name}", source=self.name, wait=wait)
        self.cluster.apply(KUSTOMIZATION, {"metadata": metadata, "spec": spec | {"targetNamespace": self.name}})
        self.until(KUSTOMIZATION, self.name, applied(self.repository.head()), namespace=self.tools)

    def suspend(self, suspended: bool) -> None:
        """Have Flux apply nothing of it for a while, or go on."""
        path = KUSTOMIZATION.path(namespace=self.tools, name=self.name)
        self.cluster.administrator.merge(path, {"spec": {"suspend": suspended}})

    def promote(self, tag: str) -> str:
        """Make a Bundle of a version; returns its name."""
        name = f"{self.name}-{tag}".replace(".", "-")
        self.cluster.apply(BUNDLE, bundle(name, tag=tag, image=image_of(self.name), pipeline=self.name))
        return name

    def status(self, promoted: str) -> JsonObject:
        """Return the status of a promotion as it is now."""
        found = self.cluster.get(PROMOTION_STEP, TEAM, names.step_name(promoted, self.name))
        status: JsonObject = (found or {}).get("status") or {}
        return status

    def says(self, promoted: str, words: str) -> JsonObject:
        """Return the status of a promotion as soon as its message has some words."""
        return self.reached(promoted, lambda status: words in status.get("message", ""))

    def verified(self, promoted: str) -> JsonObject:
        """Return the status of a promotion as soon as it is Verified."""
        return self.reached(promoted, lambda status: status.get("state") == "Verified")

    def failed(self, promoted: str) -> JsonObject:
        """Return the status of a promotion as soon as it has failed."""
        return self.reached(promoted, lambda status: status.get("state") == "Failed")

    def reached(self, promoted: str, wanted: Callable[[JsonObject], bool]) -> JsonObject:
        """Return the status of a promotion as soon as it is as wanted; it must not end otherwise before."""
        deadline = time.monotonic() + PATIENCE
        while not wanted(status := self.status(promoted)):
            assert status.get("state") not in ("Failed", "Superseded", "Verified"), status
            assert time.monotonic() < deadline, status
            time.sleep(_LOOK_AGAIN)
        return status

    def until(
        self, resource: ResourceType, name: str, wanted: Callable[[JsonObject], bool], *, namespace: str = ""
    ) -> JsonObject:
        """Return an object as soon as it is as wanted, by default of the environment."""
        deadline = time.monotonic() + PATIENCE
        while True:
            found = self.cluster.get(resource, namespace or self.name, name)
            if found is not None and wanted(found):
                return found
            assert time.monotonic() < deadline, found
            time.sleep(_LOOK_AGAIN)


def _file_of(manifest: JsonObject) -> str:
    return f"{manifest['kind'].lower()}-{manifest['metadata']['name']}.yaml"


def applied(commit: str) -> Callable[[JsonObject], bool]:
    """Return whether a Kustomization has applied a commit."""
    return lambda found: str(found.get("status", {}).get("lastAppliedRevision", "")).endswith(commit)
