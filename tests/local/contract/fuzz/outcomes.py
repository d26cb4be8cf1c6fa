"""What of an answer has to be equal on two servers.

A verdict is code, reason and the set of (cause reason, field): words differ in places where nobody reads them, and are
held equal by the recorded cases. An object is compared whole without what is of its server (uid, times, revisions);
managedFields as a map from manager to fields, because their order depends on seconds. Whether a write moved the
revision is compared too: a no-op that does wakes every controller. Only a write of nothing but the times and the order
of owners is none here, as it is one in the next second and not in this; `tests/local/plane` has that on a clock.
"""

from __future__ import annotations

import copy
import json
from dataclasses import asdict, dataclass
from typing import Any

from tests.local.contract.fuzz.steps import JsonObject

__all__ = ["HUNG_UP", "Outcome", "outcome_of"]

HUNG_UP = 0
"""The code of no answer at all, which a server gives that does not survive a request."""

_CONTROLLERS = "kube-controller-manager"
_COMPARED = ("code", "reason", "causes", "object", "managers", "moved")
_OF_THE_SERVER = ("uid", "creationTimestamp", "resourceVersion", "deletionTimestamp", "selfLink")


@dataclass(frozen=True)
class Outcome:
    """One answer, as far as it has to be equal; `words` is for people."""

    code: int
    reason: str = ""
    causes: tuple[tuple[str, str], ...] = ()
    object: JsonObject | None = None
    managers: JsonObject | None = None
    moved: bool | None = None
    words: str = ""

    def encoded(self) -> JsonObject:
        return asdict(self)

    @classmethod
    def decoded(cls, document: JsonObject) -> Outcome:
        return cls(**{**document, "causes": tuple((reason, field) for reason, field in document["causes"])})

    def differences(self, other: Outcome) -> list[str]:
        """The names of what differs."""
        return [name for name in _COMPARED if not _equal(getattr(self, name), getattr(other, name))]

    def apart(self, other: Outcome) -> list[str]:
        """What differs, a line each; `other` is on the right."""
        return [
            f"{name}{line}"
            for name in self.differences(other)
            for line in _apart(getattr(self, name), getattr(other, name), "")
        ]


def outcome_of(code: int, body: Any, *, before: JsonObject | None) -> Outcome:
    """`before`: the object that the client knew of, None when it cannot tell."""
    if not isinstance(body, dict):
        return Outcome(code, words=str(body))
    if body.get("kind") == "Status":
        details = body.get("details") or {}
        causes = {(str(cause.get("reason", "")), str(cause.get("field", ""))) for cause in details.get("causes") or ()}
        return Outcome(code, body.get("reason", ""), tuple(sorted(causes)), words=body.get("message", ""))
    scrubbed = copy.deepcopy(body)
    metadata = scrubbed["metadata"]
    managers = {
        "/".join([entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", "")]): entry[
            "fieldsV1"
        ]
        for entry in metadata.pop("managedFields", ())
        if entry["manager"] != _CONTROLLERS
    }
    for name in _OF_THE_SERVER:
        if name in metadata:
            metadata[name] = "set"
    moved: bool | None = _moved(before, body)
    if body["kind"] == "Service":
        _hide_drawn(scrubbed["spec"])
    if body["kind"] == "Deployment":
        # Its controller writes the status whenever it likes.
        scrubbed.pop("status", None)
        moved = None
    return Outcome(code, object=scrubbed, managers=managers, moved=moved)


def _moved(before: JsonObject | None, after: JsonObject) -> bool:
    if before is None:
        return "resourceVersion" in after["metadata"]
    if before["metadata"].get("resourceVersion") == after["metadata"].get("resourceVersion"):
        return False
    owners = [one["metadata"].get("managedFields") for one in (before, after)]
    return _equal(*owners) or not _equal(_timeless(before), _timeless(after))


def _timeless(document: JsonObject) -> JsonObject:
    """The object without its revision, and with its owners in an order that no second decides."""
    metadata = {key: value for key, value in document["metadata"].items() if key != "resourceVersion"}
    owners = [{**entry, "time": ""} for entry in metadata.get("managedFields", ())]
    metadata["managedFields"] = sorted(owners, key=lambda entry: json.dumps(entry, sort_keys=True))
    return {**document, "metadata": metadata}


def _hide_drawn(spec: JsonObject) -> None:
    """The address of a service, unless it is to have none: the fuzz asks for no other, so the server drew it."""
    if spec.get("clusterIP") not in (None, "", "None"):
        spec["clusterIP"] = "drawn"
    if spec.get("clusterIPs") not in (None, ["None"]):
        spec["clusterIPs"] = ["drawn" for _ in spec["clusterIPs"]]


def _apart(left: Any, right: Any, path: str) -> list[str]:
    if isinstance(left, dict) and isinstance(right, dict):
        lines = []
        for key in sorted({*left, *right}):
            lines += _apart(left.get(key, "(absent)"), right.get(key, "(absent)"), f"{path}.{key}")
        return lines
    return [] if _equal(left, right) else [f"{path}: left {left!r}, right {right!r}"]


def _equal(left: Any, right: Any) -> bool:
    """Equality as JSON has it: to Python, `True` is `1`."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_equal(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_equal, left, right))
    return type(left) is type(right) and bool(left == right)
