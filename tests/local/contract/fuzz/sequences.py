"""Sequences of requests from a seed.

Each is about one object and at least eight requests long. Three managers apply, three others update; they share few
fields and few values, so that they conflict often. One body in a few is wrong somewhere; an object is deleted and
comes back; its managedFields are rewritten. Nothing depends on an answer, so both servers are asked the same.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

from tests.local.contract.fuzz.builtins import BUILTINS, body_of, root_of, status_of
from tests.local.contract.fuzz.schemas import SLOTS, has_status, slot_path
from tests.local.contract.fuzz.steps import MISSING, JsonObject, Sequence, Step
from tests.local.contract.fuzz.values import Values

__all__ = ["sequence"]

_APPLIERS = ("alpha", "beta", "gamma", "kubectl")
_UPDATERS = ("alpha", "delta", "epsilon")
_LABELS = ("l0", "l1")
_POD = ("spec", "template")
_DEPLOYMENT_NEEDS = {
    ("spec",),
    ("spec", "paused"),
    ("spec", "selector"),
    ("spec", "selector", "matchLabels"),
    ("spec", "selector", "matchLabels", "app"),
    _POD,
    (*_POD, "metadata"),
    (*_POD, "metadata", "labels"),
    (*_POD, "metadata", "labels", "app"),
    (*_POD, "spec"),
    (*_POD, "spec", "containers"),
}
_KEYLESS = ("tolerations",)
"""Lists whose objects no key tells apart: told an order for one, the real server panics and hangs up."""
_MERGE_KEYS = ("name", "port", "containerPort", "ip", "key")


def sequence(seed: int, index: int, *, definitions: list[JsonObject], namespace: str) -> Sequence:
    """The sequence number `index` of a seed."""
    rng = Random(f"{seed}/sequence/{index}")
    name = f"o{index}"
    if rng.random() < 0.65:
        crd = rng.choice(definitions)
        author: _Author = _CustomAuthor(rng, crd, slot=rng.randrange(SLOTS))
        names, group = crd["spec"]["names"], crd["spec"]["group"]
        base = {"apiVersion": f"{group}/v1", "kind": names["kind"], "metadata": {"name": name}}
        collection = f"/apis/{group}/v1/namespaces/{namespace}/{names['plural']}"
    else:
        crd = None
        kind = rng.choices(list(BUILTINS), [3, 3, 4])[0]
        author = _BuiltinAuthor(rng, kind)
        api_version, plural = BUILTINS[kind]
        base = {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}}
        collection = f"{root_of(api_version)}/namespaces/{namespace}/{plural}"
    steps = _Script(rng, author, base).write()
    return Sequence(name, collection, base, tuple(steps), crd)


class _Author:
    """Writes what an object of one kind may hold."""

    strategic = False
    status = False
    watched = False
    """Whether a controller of the real server writes to such objects, too."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def content(self, *, nulls: bool = False) -> JsonObject:
        raise NotImplementedError

    def report(self) -> JsonObject:
        """What a status write says."""
        raise NotImplementedError

    def paths(self) -> list[tuple[str, ...]]:
        """Paths that may be there, for JSON patches and edits."""
        found: list[tuple[str, ...]] = []
        _collect(self.content(), (), found)
        return found or [("metadata", "labels")]

    def sane(self, path: tuple[str, ...]) -> bool:
        return True

    def _mischief(self) -> float:
        return 0.06 if self._rng.random() < 0.5 else 0.0


class _CustomAuthor(_Author):
    def __init__(self, rng: Random, crd: JsonObject, *, slot: int) -> None:
        super().__init__(rng)
        self._path = slot_path(crd, slot)
        root = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        self._schema = _descend(root, self._path)
        self._status = _descend(root, ("status", f"s{slot}")) or {"x-kubernetes-preserve-unknown-fields": True}
        self._status_path = ("status", f"s{slot}")
        self.status = has_status(crd)

    def content(self, *, nulls: bool = False) -> JsonObject:
        values = Values(self._rng, mischief=self._mischief(), nulls=0.12 if nulls else 0.0)
        return _nest(self._path, values.of(self._schema))

    def report(self) -> JsonObject:
        return _nest(self._status_path, Values(self._rng, mischief=self._mischief()).of(self._status))


class _BuiltinAuthor(_Author):
    strategic = True

    def __init__(self, rng: Random, kind: str) -> None:
        super().__init__(rng)
        self._kind = kind
        self.status = kind == "Service"
        self.watched = kind == "Deployment"

    def content(self, *, nulls: bool = False) -> JsonObject:
        body = body_of(self._kind, self._rng, mischief=4 * self._mischief())
        if nulls and self._rng.random() < 0.3:
            spec = body.get("spec")
            target = self._rng.choice([body, spec if isinstance(spec, dict) else body])
            optional = [key for key in target if key not in ("spec", "paused", "template", "selector", "clusterIP")]
            if optional:
                target[self._rng.choice(optional)] = None
        return body

    def report(self) -> JsonObject:
        return {"status": status_of(self._kind, self._rng)}

    def sane(self, path: tuple[str, ...]) -> bool:
        """What a Deployment cannot be without stays: core validation is not what this is about."""
        return self._kind != "Deployment" or path not in _DEPLOYMENT_NEEDS


class _Script:
    """The requests of one sequence."""

    def __init__(self, rng: Random, author: _Author, base: JsonObject) -> None:
        self._rng = rng
        self._author = author
        self._base = base

    def write(self) -> list[Step]:
        acts: list[tuple[Callable[[], Step], int]] = [
            (self._apply, 80),
            (self._create, 9),
            (self._update, 12),
            (self._merge, 9),
            (self._json, 9),
            (self._annotate, 5),
            (self._delete, 4),
        ]
        if not self._author.watched:
            acts.append((self._managers, 5))
        if self._author.strategic:
            acts.append((self._strategic, 14))
        if self._author.status:
            acts.append((self._report, 14))
        choices, weights = [act for act, _ in acts], [weight for _, weight in acts]
        steps = [self._rng.choice([self._create, self._apply])()]
        while len(steps) < 12:
            step = self._rng.choices(choices, weights)[0]()
            steps.append(step)
            if step.verb == "delete":
                steps.append(self._rng.choice([self._create, self._apply])())
        return [self._with_options(step) for step in steps]

    def _with_options(self, step: Step) -> Step:
        if step.verb != "delete" and self._rng.random() < 0.03:
            return replace(step, query={**step.query, "dryRun": "All"})
        return step

    def _create(self) -> Step:
        return Step("create", self._document(), query=self._updater())

    def _apply(self) -> Step:
        query = {"fieldManager": self._rng.choice(_APPLIERS)}
        if self._rng.random() < 0.06:
            query["force"] = "true"
        document = self._document()
        metadata = document["metadata"]
        chance = self._rng.random()
        if chance < 0.02:
            metadata["resourceVersion"] = "1"
        elif chance < 0.03:
            metadata["uid"] = "11111111-2222-3333-4444-555555555555"
        elif chance < 0.04:
            metadata["managedFields"] = []
        elif chance < 0.05:
            document["apiVersion"] = "other.io/v1"
        if self._rng.random() < 0.1:
            document |= {"status": self._author.report().get("status")}
        return Step("apply", document, query=query)

    def _update(self) -> Step:
        edits: list[tuple[tuple[str, ...], Any]] = []
        for _ in range(self._rng.randint(1, 3)):
            path, value = self._edit()
            edits.append((path, value))
        if self._rng.random() < 0.4:
            edits.append((("metadata", "resourceVersion"), "1"))
        return Step("update", edits=tuple(edits), query=self._updater())

    def _edit(self) -> tuple[tuple[str, ...], Any]:
        content = self._author.content()
        paths: list[tuple[str, ...]] = []
        _collect(content, (), paths)
        paths = [path for path in paths if self._author.sane(path)]
        if not paths:
            return ("metadata", "labels", "l0"), self._rng.choice("ab")
        path = self._rng.choice(paths)
        return path, MISSING if self._rng.random() < 0.25 else _descend_value(content, path)

    def _merge(self) -> Step:
        return Step("merge", self._author.content(nulls=True) | self._metadata(), query=self._updater())

    def _strategic(self) -> Step:
        body = self._author.content(nulls=True) | self._metadata()
        for holder, key in _lists_of_objects(body):
            chance = self._rng.random()
            identities = [{name: item[name] for name in _MERGE_KEYS if name in item} for item in holder[key]]
            if chance < 0.3:
                holder[key][-1] = {**identities[-1], "$patch": "delete"}
            elif chance < 0.4:
                holder[key].append({"$patch": "replace"})
            elif chance < 0.5 and key not in _KEYLESS:
                holder[f"$setElementOrder/{key}"] = self._rng.sample(identities, len(identities))
        if self._chance(0.05) and isinstance(spec := body.get("spec"), dict):
            spec["$patch"] = self._rng.choice(["replace", "delete", "merge", "sometimes"])
        return Step("strategic", body, query=self._updater())

    def _json(self) -> Step:
        operations: list[JsonObject] = []
        for _ in range(self._rng.randint(1, 3)):
            path, value = self._edit()
            pointer = "/" + "/".join(path)
            name = self._rng.choices(["add", "replace", "remove", "test", "copy", "move"], [10, 5, 4, 2, 1, 1])[0]
            operation: JsonObject = {"op": name, "path": pointer}
            if name in ("add", "replace", "test"):
                operation["value"] = None if value == MISSING else value
            if name in ("copy", "move"):
                operation["from"] = "/" + "/".join(self._edit()[0])
                if not self._author.sane(tuple(operation["from"].split("/")[1:])):
                    operation["from"] = "/metadata/name"
            operations.append(operation)
        return Step("json", operations, query=self._updater())

    def _annotate(self) -> Step:
        kind = self._rng.choice(["labels", "annotations"])
        values: JsonObject = {name: self._rng.choice(["x", "y", None, ""]) for name in _LABELS if self._chance(0.6)}
        if self._chance(0.1):
            values["bad key!"] = "x"
        return Step("merge", {"metadata": {kind: values if self._chance(0.9) else None}}, query=self._updater())

    def _managers(self) -> Step:
        how = self._rng.choice(["rename", "apply", "drop", "empty", "blank", "broken"])
        edits = (self._edit(),) if self._chance(0.3) else ()
        return Step("update", edits=edits, managers=how, query=self._updater())

    def _report(self) -> Step:
        verb = self._rng.choice(["apply", "apply", "merge", "update"])
        query = self._updater()
        report = self._author.report()
        if verb == "apply":
            query = {"fieldManager": self._rng.choice(_APPLIERS)} | ({"force": "true"} if self._chance(0.3) else {})
            report = {**self._document(), **report} if self._chance(0.3) else {**copy.deepcopy(self._base), **report}
        elif verb == "merge" and self._chance(0.3):
            report = report | self._metadata()
        elif verb == "update":
            edits: tuple[tuple[tuple[str, ...], Any], ...] = ((("status",), report.get("status")),)
            if self._chance(0.3):
                edits = (*edits, self._edit())
            return Step("update", edits=edits, subresource="status", query=query)
        return Step(verb, report, subresource="status", query=query)

    def _delete(self) -> Step:
        return Step("delete")

    def _document(self) -> JsonObject:
        document = {**copy.deepcopy(self._base), **self._author.content()}
        document["metadata"] = {**self._metadata().get("metadata", {}), **self._base["metadata"]}
        if self._chance(0.015):
            document["metadata"]["name"] = "another"
        if self._chance(0.015):
            document["unknown"] = 1
        return document

    def _metadata(self) -> JsonObject:
        if self._chance(0.6):
            return {}
        metadata: JsonObject = {}
        if self._chance(0.7):
            metadata["labels"] = self._notes()
        if self._chance(0.4):
            metadata["annotations"] = self._notes()
        if self._chance(0.1):
            metadata["finalizers"] = [f"fuzz.kardinal.io/{name}" for name in self._rng.choice(["a", "b", "ab"])]
        if self._chance(0.03):
            metadata["unknown"] = 1
        return {"metadata": metadata}

    def _notes(self) -> dict[str, str]:
        """Labels or annotations; never none, see row `applied-empty-metadata` of the ledger."""
        return {name: self._rng.choice("xy") for name in _LABELS if self._chance(0.5)} or {_LABELS[0]: "x"}

    def _updater(self) -> dict[str, str]:
        return {"fieldManager": self._rng.choice(_UPDATERS)}

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability


def _nest(path: tuple[str, ...], value: Any) -> JsonObject:
    for part in reversed(path):
        value = {part: value}
    assert isinstance(value, dict)
    return value


def _descend(schema: JsonObject, path: tuple[str, ...]) -> JsonObject:
    for part in path:
        schema = schema.get("properties", {}).get(part, {})
    return schema


def _descend_value(value: Any, path: tuple[str, ...]) -> Any:
    for part in path:
        value = value[part]
    return value


def _collect(value: Any, path: tuple[str, ...], found: list[tuple[str, ...]]) -> None:
    """The paths of all fields of objects."""
    if isinstance(value, dict):
        for key, item in value.items():
            found.append((*path, key))
            _collect(item, (*path, key), found)


def _lists_of_objects(value: Any) -> list[tuple[JsonObject, str]]:
    found: list[tuple[JsonObject, str]] = []
    if isinstance(value, dict):
        for key, item in value.items():
            if isinstance(item, list) and item and all(isinstance(one, dict) for one in item):
                found.append((value, key))
                for one in item:
                    found += _lists_of_objects(one)
            else:
                found += _lists_of_objects(item)
    return found
