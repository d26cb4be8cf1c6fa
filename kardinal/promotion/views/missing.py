"""The errors of views about a Pipeline, Bundle or environment that does not exist."""

from __future__ import annotations

from collections.abc import Iterable

from kardinal.objects.errors import KardinalError

__all__ = ["NotThere", "no_bundle", "unknown_bundle", "unknown_environment", "unknown_pipeline"]


class NotThere(KardinalError):
    """The requested Pipeline, Bundle or environment does not exist; the remedy lists the existing names."""


def unknown_pipeline(name: str, namespace: str, known: Iterable[str]) -> NotThere:
    names = ", ".join(known)
    remedy = f"There are: {names}" if names else "Create one: kardinal init -f kardinal.yaml"
    return NotThere(f"no Pipeline {name} in namespace {namespace}", remedy=remedy)


def unknown_environment(pipeline: str, name: str, known: Iterable[str]) -> NotThere:
    return NotThere(f"Pipeline {pipeline} has no environment {name}", remedy=f"It has: {', '.join(known)}")


def unknown_bundle(pipeline: str, name: str) -> NotThere:
    return NotThere(f"Pipeline {pipeline} has no Bundle {name}", remedy=f"List them: kardinal get bundles {pipeline}")


def no_bundle(pipeline: str) -> NotThere:
    return NotThere(
        f"Pipeline {pipeline} has no Bundle yet",
        remedy=f"Create one: kardinal create bundle {pipeline} --image REPOSITORY:TAG",
    )
