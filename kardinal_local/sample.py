"""The sample of `kardinal demo` and `kardinal sample`: a GitOps repository, its Pipeline and org gates (pure)."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from kardinal.objects import SECRET
from kardinal.promotion.api.names import LABEL_SCOPE, LABEL_TYPE, TYPE_GATE, WEBHOOK_SECRET
from kardinal.promotion.kinds import PIPELINE, POLICY_GATE
from kardinal.promotion.policy.attributes import DAYS

__all__ = [
    "APP",
    "ENVIRONMENTS",
    "IMAGE",
    "NEW_TAG",
    "OLD_TAG",
    "SOAK_SECONDS",
    "files",
    "org_gate",
    "pipeline",
    "schedule_gate",
    "webhook_secret",
]

APP = "podinfo"
IMAGE = "ghcr.io/acme/podinfo"
OLD_TAG = "6.11.0"
NEW_TAG = "6.12.0"
ENVIRONMENTS = ("dev", "staging", "prod")
SOAK_SECONDS = 6

_DEPLOYMENT = f"""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {APP}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: {APP}
  template:
    metadata:
      labels:
        app: {APP}
    spec:
      containers:
        - name: {APP}
          image: {IMAGE}
          ports:
            - containerPort: 9898
"""

_BASE = """\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources:
  - deployment.yaml
"""


def _overlay(environment: str) -> str:
    return f"""\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
namespace: {environment}
resources:
  - ../../base
# kardinal changes the tag below, and nothing else in this file
images:
  - name: {IMAGE}
    newTag: "{OLD_TAG}"
"""


def files() -> dict[str, bytes]:
    """Return the files of the repository by path: a base, and a kustomize overlay for each environment."""
    overlays = {f"environments/{name}/kustomization.yaml": _overlay(name).encode() for name in ENVIRONMENTS}
    return {"base/kustomization.yaml": _BASE.encode(), "base/deployment.yaml": _DEPLOYMENT.encode(), **overlays}


def pipeline(repository: str) -> dict[str, Any]:
    return {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": APP, "namespace": "default"},
        "spec": {
            "git": {"url": repository, "provider": "local"},
            "environments": [
                {"name": "dev"},
                {"name": "staging"},
                {"name": "prod", "approval": "pr-review"},
            ],
        },
    }


def org_gate(namespace: str) -> dict[str, Any]:
    """Return an org gate before prod, which no Pipeline can avoid: a soak in staging of `SOAK_SECONDS`."""
    return _gate(
        "staging-soak",
        namespace,
        f"bundle.upstreamSoakMinutes >= {SOAK_SECONDS / 60}",
        f"A Bundle stays in staging for {SOAK_SECONDS} seconds before prod",
    )


def schedule_gate(namespace: str, *, now: datetime) -> dict[str, Any]:
    """Return an org gate before prod that is closed on one weekday: that of the day three days after `now`."""
    day = DAYS[(now + timedelta(days=3)).weekday()]
    return _gate(
        f"not-on-{day.lower()}s",
        namespace,
        f'schedule.dayOfWeek != "{day}"',
        f"Nothing goes to prod on {day}s (UTC)",
    )


def _gate(name: str, namespace: str, expression: str, message: str) -> dict[str, Any]:
    return {
        "apiVersion": POLICY_GATE.api_version,
        "kind": POLICY_GATE.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {LABEL_SCOPE: "org", LABEL_TYPE: TYPE_GATE},
        },
        "spec": {
            "match": {"paths": ["environments/prod"]},
            "expression": expression,
            "message": message,
            "recheckInterval": "1m",
        },
    }


def webhook_secret(token: str, key: str) -> dict[str, Any]:
    return {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.kind,
        "metadata": {"name": WEBHOOK_SECRET, "namespace": "default"},
        "stringData": {"token": token, "hmacKey": key},
    }
