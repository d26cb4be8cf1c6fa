"""Reading the objects of carto.run for a command, with the rights of its user, and with errors that say what to do."""

from __future__ import annotations

from collections.abc import Sequence

from kardinal.cli.errors import CommandError
from kardinal.cli.session import Session, is_unknown_kind
from kardinal.kube import Forbidden, NotFound
from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.suggestions import nearest

__all__ = ["read_all", "read_named"]


async def read_all(session: Session, resource: ResourceType, namespace: str | None = None) -> Sequence[JsonObject]:
    """Return the objects of a kind, in one namespace or in all.

    Raises `CommandError` if the kind is not installed, or if it is one of the cluster that the user may not read.
    """
    try:
        return (await session.client.list(resource, namespace)).items
    except NotFound as error:
        raise _not_installed(error) from None
    except Forbidden as error:
        if resource.namespaced:
            raise
        remedy = "Ask for ClusterRole kardinal-supplychain-reader. It reads blueprints and templates."
        raise CommandError(error.message, remedy=remedy) from None


async def read_named(session: Session, resource: ResourceType, name: str) -> JsonObject:
    """Return an object of the namespace of the session. Raises `CommandError` with the names that there are."""
    try:
        return await session.client.get(resource, name, session.namespace)
    except NotFound as error:
        if is_unknown_kind(error):
            raise _not_installed(error) from None
    known = [each["metadata"]["name"] for each in await read_all(session, resource, session.namespace)]
    near = nearest(name, known)
    if near:
        remedy = f"Did you mean {near}?"
    elif known:
        remedy = f"There are: {', '.join(known)}"
    else:
        remedy = f"There is none in this namespace. In all of them: kardinal get {resource.plural} -A"
    raise CommandError(f"no {resource.kind} {name} in namespace {session.namespace}", remedy=remedy)


def _not_installed(error: NotFound) -> Exception:
    if not is_unknown_kind(error):
        return error
    return CommandError(
        "this cluster does not know the kinds of supply chains",
        remedy="Install them: kubectl apply -f crds/supplychain/. On this machine: kardinal local up --supply-chains",
    )
