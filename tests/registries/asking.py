"""A client of registries as the program makes it, and pull Secrets."""

from __future__ import annotations

import base64
import json
from typing import Any

from kardinal.api import names
from kardinal.api.image import ImageReference
from kardinal.objects import JsonObject
from kardinal_agent.endpoints import EndpointClient, StepHosts
from kardinal_controller.registries import FLAG, Registry
from tests.support.names import TEAM

__all__ = ["HERE", "asking", "image", "pull_secret"]

HERE = "127.0.0.1:*"
"""The pattern for the registries of tests."""


def asking(*patterns: str, **options: Any) -> Registry:
    return Registry(patterns, EndpointClient(StepHosts(patterns, flag=FLAG), **options))


def image(host: str, tag: str = "1.1.0") -> ImageReference:
    return ImageReference.parse(f"{host}/acme/my-app:{tag}")


def pull_secret(
    logins: dict[str, str], *, hosts: str, label: str = names.CREDENTIALS_REGISTRY, name: str = "pull"
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
            "labels": {names.LABEL_CREDENTIALS: label},
            "annotations": {names.ANNOTATION_HOSTS: hosts},
        },
        "data": {".dockerconfigjson": base64.b64encode(document).decode()},
    }
