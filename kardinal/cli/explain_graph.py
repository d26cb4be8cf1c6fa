"""`kardinal explain graph/NAME`: which nodes of a Graph are done, and what each other one waits for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kardinal.cli.errors import CommandError
from kardinal.cli.output import one_line, print_table, print_value, say, say_labelled
from kardinal.cli.session import Session
from kardinal.kube import NotFound
from kardinal.objects import GRAPH, JsonObject
from kardinal.objects.conditions import find_condition

__all__ = ["explain_graph"]


async def explain_graph(session: Session, name: str, output: str) -> None:
    """Print the states of the nodes of a Graph, in the order in which they are walked."""
    try:
        graph = await session.client.get(GRAPH, name, session.namespace)
    except NotFound:
        remedy = f"List them: kubectl get graphs -n {session.namespace}"
        raise CommandError(f"there is no Graph {name} in namespace {session.namespace}", remedy=remedy) from None
    nodes = _nodes(graph)
    result = _result(graph, nodes)
    if output != "table":
        print_value({"graph": name, "nodes": nodes, "result": result}, output)
        return
    say(f"GRAPH: {name}")
    rows = [[each["id"], each["kind"], each["state"], each["object"], one_line(each["waits"])] for each in nodes]
    print_table(["NODE", "KIND", "STATE", "OBJECT", "WAITS FOR"], rows, empty="the Graph was not walked yet")
    say_labelled("RESULT: ", one_line(result))


def _nodes(graph: JsonObject) -> list[dict[str, Any]]:
    status = graph.get("status") or {}
    by_id = {each["id"]: each for each in status.get("nodes") or ()}
    order = [*(each for each in status.get("topologicalOrder") or () if each in by_id), *by_id]
    return [_node(by_id[each]) for each in dict.fromkeys(order)]


def _node(node: JsonObject) -> dict[str, Any]:
    made = node.get("object") or {}
    waiting = "; ".join(map(str, node.get("waitingFor") or ()))
    return {
        "id": node["id"],
        "kind": node.get("kind") or "",
        "state": node.get("state") or "Unknown",
        "object": f"{made['kind']}/{made['name']}" if made else "",
        "waits": node.get("message") or waiting or node.get("reason") or "",
    }


def _result(graph: JsonObject, nodes: Sequence[dict[str, Any]]) -> str:
    status = graph.get("status") or {}
    accepted = find_condition(status, "Accepted")
    if accepted is None:
        return "PENDING: no controller has walked it yet"
    if accepted["status"] != "True":
        return f"REFUSED: {accepted.get('message') or accepted['reason']}"
    ready = find_condition(status, "Ready")
    if ready is not None and ready["status"] == "True":
        return "READY"
    waiting = next((each for each in nodes if each["state"] != "Ready"), None)
    if waiting is None:
        return "WAITING"
    return f"WAITING at {waiting['id']}: {waiting['waits']}" if waiting["waits"] else f"WAITING at {waiting['id']}"
