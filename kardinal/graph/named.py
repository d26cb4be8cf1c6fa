"""The kinds and the objects that the nodes of specs name, read from each spec as it is, whether it compiles or not.

They bound what a Graph can own: an owner reference with its uid is no proof, but of all objects that carry one, the
Graph has made only those that a template in one of its versions can have made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kardinal.graph.identity import ObjectKey

__all__ = ["Claims", "Named"]


class Named:
    """The kinds and objects that some versions of a spec name.

    `kinds`, as apiVersion and kind, are those of all bodies, and `written` those of templates and patches. A body that
    is an expression names none.
    """

    def __init__(self, specs: Iterable[Mapping[str, Any]] = ()) -> None:
        self.kinds: set[tuple[str, str]] = set()
        self.written: set[tuple[str, str]] = set()
        self.templates = Claims()
        self.patches = Claims()
        for spec in specs:
            nodes = spec.get("nodes")
            for node in nodes if isinstance(nodes, list) else ():
                if isinstance(node, dict):
                    self._add(node)

    def _add(self, node: Mapping[str, Any]) -> None:
        self.templates.add(node.get("template"))
        self.patches.add(node.get("patch"))
        for word, body in node.items():
            if not isinstance(body, dict) or word == "def":
                continue
            api_version = body.get("apiVersion")
            kind = body.get("kind")
            if isinstance(api_version, str) and isinstance(kind, str):
                self.kinds.add((api_version, kind))
                if word in ("template", "patch"):
                    self.written.add((api_version, kind))


class Claims:
    """The objects that some bodies can have written.

    A body whose name is an expression can have written an object of any name, and one that is an expression as a whole
    an object of any kind.
    """

    def __init__(self) -> None:
        self._everything = False
        self._kinds: set[str] = set()
        self._names: set[tuple[str, str]] = set()

    def __contains__(self, key: ObjectKey) -> bool:
        kind = key.resource.kind
        return self._everything or kind in self._kinds or (kind, key.name) in self._names

    def add(self, body: object) -> None:
        if isinstance(body, str):
            self._everything = True
        if not isinstance(body, dict) or not isinstance(kind := body.get("kind"), str):
            return
        metadata = body.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        if isinstance(name, str):
            if "${" in name:
                self._kinds.add(kind)
            self._names.add((kind, name))
