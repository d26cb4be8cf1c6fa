"""Decide which namespaces an agent reads, and from which of them it quotes texts of objects.

A Pipeline may name a workload in any namespace of the agent's cluster, although its author may have no rights there.
The author is therefore told whether the workload runs the promoted images, in fixed words. Images, messages and numbers
of the workload are quoted only if its namespace is that of the Pipeline, admits the Pipeline by the annotation
`kardinal.io/pipelines-from`, or matches `--quote-namespaces`. Namespaces outside of `--health-namespaces` are not read.

For an object that no Pipeline names the rule is stricter: an object that is detected, or that the agent writes to, must
be in the namespace of the Pipeline or in one with the annotation.

In a pattern, `*` stands for any characters, or none: `team-*`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.objects import JsonObject
from kardinal.runtime import Informer

__all__ = ["PIPELINES_FROM", "HealthNamespaces", "pipelines_from"]

PIPELINES_FROM = "kardinal.io/pipelines-from"
"""The annotation of a namespace with the namespaces whose Pipelines it admits, such as `team-a, team-b-*`."""

_SYSTEM = ("kube-*", "kardinal-system")
_MOST_PATTERNS = 100
"""The most patterns of one annotation that are read."""


class HealthNamespaces:
    """The rules about namespaces, from the watched Namespaces of the agent's cluster and the flags of the operator."""

    def __init__(
        self, namespaces: Informer, *, allowed: Iterable[str], policies: Iterable[str], quoted: Iterable[str]
    ) -> None:
        self._namespaces = namespaces
        self._allowed = tuple(allowed)
        self._kept_out = (*_SYSTEM, *policies)
        self._quoted = tuple(quoted)

    def refusal(self, namespace: str) -> str | None:
        """Return why a namespace is not read, with the flag that forbids it; None if it is read."""
        if self._allowed:
            known = _matches_any(self._allowed, namespace)
            all_in = ", ".join(self._allowed)
        else:
            known = not _matches_any(self._kept_out, namespace)
            all_in = f"all but {', '.join(self._kept_out)}"
        if known:
            return None
        return (
            f"{namespace} is not among the namespaces whose workloads are looked at ({all_in}): "
            "name another one, or ask the operator for --health-namespaces"
        )

    def quotes(self, namespace: str, *, reader: str) -> bool:
        """Return whether texts of objects in `namespace` are quoted to Pipelines in the namespace `reader`."""
        if namespace == reader or _matches_any(self._quoted, namespace):
            return True
        return self._names(namespace, reader)

    def lets_in(self, namespace: str, *, reader: str) -> bool:
        """Return whether `namespace` admits Pipelines of the namespace `reader` to its objects."""
        own = namespace == reader
        return (own or self._names(namespace, reader)) and self.refusal(namespace) is None

    def open_to(self, reader: str) -> Sequence[str]:
        """Return the namespaces that admit Pipelines of the namespace `reader`, in the order of their names."""
        annotated = {each["metadata"]["name"] for each in self._namespaces.list() if pipelines_from(each)}
        return sorted(name for name in {reader, *annotated} if self.lets_in(name, reader=reader))

    def _names(self, namespace: str, reader: str) -> bool:
        """Return whether a pattern in the annotation of `namespace` matches `reader`."""
        found = self._namespaces.get(None, namespace)
        return found is not None and _matches_any(_patterns(pipelines_from(found)), reader)


def pipelines_from(namespace: JsonObject) -> str:
    """Return the annotation `kardinal.io/pipelines-from` of a Namespace; empty without one."""
    return str((namespace["metadata"].get("annotations") or {}).get(PIPELINES_FROM, ""))


def _patterns(annotation: str) -> Iterable[str]:
    return (pattern.strip() for pattern in annotation.split(",", _MOST_PATTERNS)[:_MOST_PATTERNS])


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return any(_matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern, in time linear in the length of the pattern."""
    first, *rest = pattern.split("*")
    if not rest:
        return name == pattern
    *middle, last = rest
    end = len(name) - len(last)
    if not name.startswith(first) or not name.endswith(last) or end < len(first):
        return False
    position = len(first)
    for part in middle:
        found = name.find(part, position, end)
        if found < 0:
            return False
        position = found + len(part)
    return True
