"""A client of registries as the program makes it, and pull Secrets."""

from __future__ import annotations

import base64
import json
from typing import Any

from kardinal.objects import JsonObject
from kardinal.objects.image_reference import ImageReference
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_REGISTRY, LABEL_CREDENTIALS
from kardinal_agent.endpoints import EndpointClient, StepHosts
from kardinal_controller.registries import FLAG, RegistryClient
from tests.support.names import TEAM

__all__ = ["HERE", "asking", "image", "pull_secret"]

HERE = "127.0.0.1:*"
"""The pattern for the registries of tests."""


def asking(*patterns: str, **options: Any) -> RegistryClient:
    return RegistryClient(patterns, EndpointClient(StepHosts(patterns, flag=FLAG), **options))


def image(host: str, tag: str = "1.1.0") -> ImageReference:
    return ImageReference.parse(f"{host}/acme/my-app:{tag}")


def pull_secret(
    logins: dict[str, str], *, hosts: str, label: str = CREDENTIALS_REGISTRY, name: str = "pull"
) -> JsonObject:
    """Return a pull Secret with logins (`user:password`) by registry, that says it is for `hosts`."""
    auths = {registry: {"auth": base64.b64encode(login.encode()).decode()} for registry, login in logins.items()}
    document = json.dumps({"auths": auths}).encode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "kubernetes.io/dockerconfigjson",
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: label},
            "annotations": {ANNOTATION_HOSTS: hosts},
        },
        "data": {".dockerconfigjson": base64.b64encode(document).decode()},
    }
