"""Write the roles and bindings a real server starts with: `python -m hack.kube.bootstrap_policy`.

A real server is started, with its aggregation controller, and asked for those that concern people; the sixty
roles of Kubernetes' own controllers would speak of programs that the local plane does not run. What is kept is the
whole object but for what every server decides anew: UIDs, revisions, times.

The result is one object per line, sorted, so that a change of Kubernetes is a readable diff.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from hack.kube.asking import Ask, real_server

__all__ = ["BINDINGS", "OUTPUT", "ROLES", "objects", "write"]

OUTPUT = Path(__file__).parents[2] / "kardinal_local" / "plane" / "security" / "bootstrap.jsonl"
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


def objects(ask: Ask) -> list[dict[str, Any]]:
    """Return the objects as `OUTPUT` holds them."""
    return [
        *(_object(ask, "clusterroles", name) for name in ROLES),
        *(_object(ask, "clusterrolebindings", name) for name in BINDINGS),
    ]


def write(output: Path) -> None:
    with real_server() as ask:
        found = objects(ask)
    output.write_bytes(b"".join(orjson.dumps(one, option=orjson.OPT_SORT_KEYS) + b"\n" for one in found))


def _object(ask: Ask, plural: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = ask(f"/apis/rbac.authorization.k8s.io/v1/{plural}/{name}")
    for key in ("uid", "resourceVersion", "creationTimestamp"):
        del found["metadata"][key]
    for managed in found["metadata"]["managedFields"]:
        del managed["time"]
    return found


if __name__ == "__main__":
    write(OUTPUT)
