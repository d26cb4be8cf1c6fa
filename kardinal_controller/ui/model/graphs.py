"""The page of a Graph, and the list of them."""

from __future__ import annotations

from datetime import datetime

from kardinal_controller.ui.model.parts import ConditionLine, View

__all__ = ["GraphDocument", "GraphList", "GraphNodeLine", "GraphRow"]


class GraphNodeLine(View):
    """A node of a Graph beside the state of its child."""

    id: str
    kind: str
    name: str
    ready: str
    """`True`, `False` or `Unknown`."""
    message: str
    child: str
    """The state in the status of the child itself; empty before the child exists."""
    upstreams: list[str]


class GraphRow(View):
    """One Graph in a list."""

    namespace: str
    name: str
    accepted: str
    ready: str
    message: str
    created: datetime | None = None


class GraphDocument(View):
    """The page of a Graph."""

    namespace: str
    name: str
    conditions: dict[str, ConditionLine]
    nodes: dict[str, GraphNodeLine]


class GraphList(View):
    """A page of Graphs, sorted by namespace and name; `next` is the parameter `after` of the following page."""

    items: list[GraphRow]
    next: str | None = None
