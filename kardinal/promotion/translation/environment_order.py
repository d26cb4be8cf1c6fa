"""The order of the environments of a Pipeline.

An environment comes after those in its `dependsOn`; without `dependsOn`, after the previous entry of the list. Each
kind of mistake, such as a cycle or an unknown name, has its own error with the environment and the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from kardinal.objects.errors import KardinalError
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api.pipeline import Environment

__all__ = ["OrderError", "ancestors", "topological", "upstreams"]


class OrderError(KardinalError):
    """The environments cannot be put in order.

    `field` is the path of the mistake, `reason` a word such as `DependencyCycle`.
    """

    def __init__(self, field: str, message: str, *, reason: str) -> None:
        super().__init__(message)
        self.field = field
        self.reason = reason


def upstreams(environments: Sequence[Environment]) -> dict[str, tuple[str, ...]]:
    """Return the upstreams of each environment, in the order in which they are written. Raises `OrderError`."""
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
    """Return the environments, upstreams first; environments of equal depth keep their order."""
    return list(TopologicalSorter(edges).static_order())


def ancestors(edges: Mapping[str, Iterable[str]], name: str) -> set[str]:
    """Return all direct and indirect upstreams of `name`. `edges` maps each name to its direct upstreams."""
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
