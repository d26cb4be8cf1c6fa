"""Many applications in one repository, each with a base and overlays of its own: who promotes one touches no other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from tests.support.objects import JsonObject, pipeline
from tests.support.repository import GitRepository, sample_files

__all__ = ["application", "applications", "place"]


def applications(names: Iterable[str], environments: Sequence[str]) -> dict[str, str]:
    """Return the files of all applications."""
    return {
        f"apps/{name}/{path}": content
        for name in names
        for path, content in sample_files(environments, application=name).items()
    }


def application(repository: GitRepository, name: str, *environments: JsonObject) -> JsonObject:
    """Return the Pipeline of one application."""
    return pipeline(repository, name=name, environments=environments)


def place(name: str, environment: str, **fields: Any) -> JsonObject:
    """Return an environment of an application."""
    return {"name": environment, "path": f"apps/{name}/environments/{environment}", **fields}
