"""Decide which objects are omitted from an export (pure).

Objects are omitted if a program creates them again, and Bundles if they must not be promoted again. A Bundle that has
ended, or that a newer Bundle has superseded or replaced in an environment, would be promoted once more on another
server, over the version that runs there. Other Bundles continue there: in environments that have their version already
they make no commit.
"""

from __future__ import annotations

from kardinal.objects import JsonObject
from kardinal.promotion.api.bundle import ENDED_PHASES
from kardinal.promotion.api.names import FIELD_MANAGER_CONTROLLER, SYSTEM_NAMESPACE
from kardinal.promotion.kinds import BUNDLE

__all__ = ["exclusion"]

_SERVER = frozenset({"kube-apiserver", "kube-controller-manager", "clusterrole-aggregation-controller"})
_SIMULATOR = frozenset({"kardinal-simulator"})
_INSTALLER = frozenset({"kardinal-local"})
_PROGRAMS = _INSTALLER | {FIELD_MANAGER_CONTROLLER}


def exclusion(document: JsonObject) -> str:
    """Return why an object is omitted from an export; empty if it is exported.

    The text follows a number: `left out 3 that the server makes itself`.
    """
    metadata = document["metadata"]
    if "deletionTimestamp" in metadata:
        return "on their way out"
    if any(reference.get("controller") for reference in metadata.get("ownerReferences", ())):
        return "that a controller makes again"
    if document["kind"] == "ServiceAccount" and metadata["name"] == "default":
        return "that the server makes itself"
    return _made_by(document) or _bundle_exclusion(document)


def _made_by(document: JsonObject) -> str:
    metadata = document["metadata"]
    managers = {entry["manager"] for entry in metadata.get("managedFields", ())}
    if not managers:
        return ""
    if managers <= _SERVER:
        return "that the server makes itself"
    if managers <= _SIMULATOR | _SERVER:
        return "that the simulator makes again"
    in_system = metadata.get("namespace") == SYSTEM_NAMESPACE
    if managers <= (_PROGRAMS if in_system else _INSTALLER) | _SERVER:
        return "that `kardinal local up` makes again"
    return ""


def _bundle_exclusion(document: JsonObject) -> str:
    if (document["apiVersion"], document["kind"]) != (BUNDLE.api_version, BUNDLE.kind):
        return ""
    status = document.get("status") or {}
    if status.get("phase") in ENDED_PHASES:
        return "Bundles that have ended"
    entries = (status.get("environments") or {}).values()
    if any("displacedBy" in entry or "replacedAt" in entry for entry in entries):
        return "Bundles under way that a newer one has overtaken somewhere"
    return ""
