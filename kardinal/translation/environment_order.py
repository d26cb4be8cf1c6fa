"""The order of a Pipeline's environments.

An environment follows what its `dependsOn` names, else the previous entry of the list. Every way in which that can make
no sense is an error of its own, naming the culprit and the field it stands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from kardinal.api.pipeline import Environment
from kardinal.objects.errors import KardinalError
from kardinal.objects.suggestions import nearest

__all__ = ["OrderError", "ancestors", "topological", "upstreams"]


class OrderError(KardinalError):
    """The environments cannot be put in order; `field` is where it stands, `reason` a CamelCase word."""

    def __init__(self, field: str, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason


def upstreams(environments: Sequence[Environment]) -> dict[str, tuple[str, ...]]:
    """Return what each environment waits for, in the order it was written. Raises `OrderError`."""
    if not environments:
        raise OrderError(
            "spec.environments", "the Pipeline has no environments; add at least one", reason="EmptyPipeline"
        )
    known = [environment.name for environment in environments]
    edges: dict[str, tuple[str, ...]] = {}
    for index, environment in enumerate(environments):
        field = f"spec.environments[{index}]"
        if environment.name in edges:
            message = f"there are two environments called {environment.name}"
            raise OrderError(f"{field}.name", message, reason="DuplicateEnvironment")
        _check_names(environment, known, field)
        previous = (known[index - 1],) if index else ()
        edges[environment.name] = previous if environment.depends_on is None else environment.depends_on
    _check_cycles(edges)
    return edges


def topological(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the environments, upstream first; entries of equal depth keep their order."""
    return list(TopologicalSorter(edges).static_order())


def ancestors(edges: Mapping[str, Iterable[str]], name: str) -> set[str]:
    """Return everything that comes before `name` in `edges`, which map each name to those it directly follows."""
    found: set[str] = set()
    waiting = list(edges.get(name, ()))
    while waiting:
        upstream = waiting.pop()
        if upstream not in found:
            found.add(upstream)
            waiting += edges.get(upstream, ())
    return found


def _check_names(environment: Environment, known: Sequence[str], field: str) -> None:
    for index, name in enumerate(environment.depends_on or ()):
        if name == environment.name:
            raise OrderError(f"{field}.dependsOn[{index}]", f"{name} depends on itself", reason="SelfDependence")
        if name not in known:
            near = nearest(name, known)
            hint = f"; did you mean {near}?" if near else f"; there are: {', '.join(known)}"
            raise OrderError(
                f"{field}.dependsOn[{index}]",
                f"{environment.name} depends on an unknown environment {name}{hint}",
                reason="UnknownEnvironment",
            )


def _check_cycles(edges: Mapping[str, tuple[str, ...]]) -> None:
    try:
        TopologicalSorter(edges).prepare()
    except CycleError as error:
        path = " -> ".join(error.args[1])
        message = f"the environments depend on each other in a circle: {path}"
        raise OrderError("spec.environments", message, reason="DependencyCycle") from None
