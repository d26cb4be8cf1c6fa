"""Write the roles and bindings a real server starts with: `python -m hack.kube.bootstrap_policy`.

The server that KUBECONFIG names, with its aggregation controller, is asked for those that concern people; the sixty
roles of Kubernetes' own controllers would speak of programs that the local plane does not run. What is kept is the
whole object but for what every server decides anew: UIDs, revisions, times.

The result is one object per line, sorted, so that a change of Kubernetes is a readable diff.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import orjson

__all__ = ["OUTPUT", "objects", "write"]

OUTPUT = Path(__file__).parents[2] / "kardinal" / "localplane" / "security" / "bootstrap.jsonl"
ROLES = (
    "admin",
    "cluster-admin",
    "edit",
    "system:aggregate-to-admin",
    "system:aggregate-to-edit",
    "system:aggregate-to-view",
    "system:auth-delegator",
    "system:basic-user",
    "system:discovery",
    "system:public-info-viewer",
    "view",
)
BINDINGS = ("cluster-admin", "system:basic-user", "system:discovery", "system:public-info-viewer")
SECONDS = 60


def objects() -> list[dict[str, Any]]:
    """The objects as `OUTPUT` holds them."""
    return [
        *(_get("clusterroles", name) for name in ROLES),
        *(_get("clusterrolebindings", name) for name in BINDINGS),
    ]


def write(output: Path) -> None:
    output.write_bytes(b"".join(orjson.dumps(one, option=orjson.OPT_SORT_KEYS) + b"\n" for one in objects()))


def _get(plural: str, name: str) -> dict[str, Any]:
    path = f"/apis/rbac.authorization.k8s.io/v1/{plural}/{name}"
    answer = subprocess.run(["kubectl", "get", "--raw", path], capture_output=True, check=True, timeout=SECONDS)
    found: dict[str, Any] = orjson.loads(answer.stdout)
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        del found["metadata"][key]
    for managed in found["metadata"]["managedFields"]:
        del managed["time"]
    return found


if __name__ == "__main__":
    write(OUTPUT)
