"""Which namespaces an agent looks into, and from which of them it repeats what objects say.

A Pipeline names the workload that proves an environment, in any namespace of the agent's cluster, while its author may
have no rights there. So whether the workload runs what was promoted is told, in words of our own; its images, messages
and numbers are told where its namespace is the Pipeline's, says that they may be (the annotation `pipelines-from`), or
is one of `--quote-namespaces`. Some namespaces are not looked into at all.

An object that no Pipeline names is believed less: one that is found to deploy an environment, or that is written to,
must be in the Pipeline's namespace or in one with the annotation.

In a pattern `*` stands for any characters, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kardinal.objects import JsonObject
from kardinal.runtime import Informer

__all__ = ["PIPELINES_FROM", "HealthNamespaces", "pipelines_from"]

PIPELINES_FROM = "kardinal.io/pipelines-from"
"""The annotation of a namespace that lists the namespaces whose Pipelines are told what its workloads say."""

_SYSTEM = ("kube-*", "kardinal-system")
_MOST_PATTERNS = 100
"""Patterns of one annotation that are read."""


class HealthNamespaces:
    """Answers from the watched Namespaces of the agent's cluster, and from the flags of the operator."""

    def __init__(
        self, namespaces: Informer, *, allowed: Iterable[str], policies: Iterable[str], quoted: Iterable[str]
    ) -> None:
        self._namespaces = namespaces
        self._allowed = tuple(allowed)
        self._kept_out = (*_SYSTEM, *policies)
        self._quoted = tuple(quoted)

    def refusal(self, namespace: str) -> str | None:
        """Return why workloads of a namespace prove nothing, with the flag that decides; None when they do."""
        if self._allowed:
            known, all_in = _matches_any(self._allowed, namespace), ", ".join(self._allowed)
        else:
            known, all_in = not _matches_any(self._kept_out, namespace), f"all but {', '.join(self._kept_out)}"
        if known:
            return None
        return (
            f"{namespace} is not among the namespaces whose workloads are looked at ({all_in}): "
            "name another one, or ask the operator for --health-namespaces"
        )

    def quotes(self, namespace: str, *, reader: str) -> bool:
        """Return whether Pipelines of the namespace `reader` are told what objects of `namespace` say."""
        if namespace == reader or _matches_any(self._quoted, namespace):
            return True
        return self._names(namespace, reader)

    def lets_in(self, namespace: str, *, reader: str) -> bool:
        """Return whether the owners of `namespace` let Pipelines of the namespace `reader` find and use its objects."""
        own = namespace == reader
        return (own or self._names(namespace, reader)) and self.refusal(namespace) is None

    def open_to(self, reader: str) -> Sequence[str]:
        """Return the namespaces that let Pipelines of the namespace `reader` in, in the order of their names."""
        annotated = {each["metadata"]["name"] for each in self._namespaces.list() if pipelines_from(each)}
        return sorted(name for name in {reader, *annotated} if self.lets_in(name, reader=reader))

    def _names(self, namespace: str, reader: str) -> bool:
        """Return whether the annotation of a namespace names another one."""
        found = self._namespaces.get(None, namespace)
        return found is not None and _matches_any(_patterns(pipelines_from(found)), reader)


def pipelines_from(namespace: JsonObject) -> str:
    """Return the annotation of a Namespace."""
    return str((namespace["metadata"].get("annotations") or {}).get(PIPELINES_FROM, ""))


def _patterns(annotation: str) -> Iterable[str]:
    return (pattern.strip() for pattern in annotation.split(",", _MOST_PATTERNS)[:_MOST_PATTERNS])


def _matches_any(patterns: Iterable[str], name: str) -> bool:
    return any(_matches(pattern, name) for pattern in patterns)


def _matches(pattern: str, name: str) -> bool:
    """Return whether a name matches, in a time that grows with the length of the pattern."""
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
