"""Refuse roles and bindings that grant more than their author has.

Writing a role or a binding hands out rights. It takes the permission to write it and, besides, either every right it
hands out or the explicit verb for doing so without: `escalate` on roles, `bind` on the role that is bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from kardinal_local.plane.documents import JsonObject
from kardinal_local.plane.errors import StatusError
from kardinal_local.plane.kinds import Kind
from kardinal_local.plane.security.access import RBAC_GROUP, Access, RoleNotFound, told_together
from kardinal_local.plane.security.attributes import Attributes
from kardinal_local.plane.security.rules import Rule, described, listed, missing_from, parse_rules, quoted
from kardinal_local.plane.security.users import User
from kardinal_local.plane.statuses import forbidden, not_found

__all__ = ["refuse_escalation"]

_PLURALS = {"Role": "roles", "ClusterRole": "clusterroles"}
_EVERYTHING = (Rule(("*",), ("*",), ("*",)), Rule(("*",), urls=("*",)))
_OF_THE_COLLECTOR = ("ownerReferences", "finalizers", "managedFields")


def refuse_escalation(
    user: User, asked: Attributes, kind: Kind, document: JsonObject, *, old: JsonObject | None, access: Access
) -> None:
    """403 when writing `document` would hand out what `user` does not have."""
    if kind.group != RBAC_GROUP or user.is_master:
        return
    if old is not None and _apart_from_the_collector(document) == _apart_from_the_collector(old):
        return
    name = document["metadata"].get("name", "")
    if kind.plural in {"roles", "clusterroles"}:
        escalate = Attributes("escalate", RBAC_GROUP, asked.resource, namespace=asked.namespace, name=asked.name)
        if access.decide(user, escalate).allowed:
            return
        if problem := _missing(user, asked.namespace, parse_rules(document), access=access):
            raise forbidden(kind, name, problem)
        aggregates = _aggregates(document) or _aggregates(old or {})
        if aggregates and _missing(user, asked.namespace, _EVERYTHING, access=access):
            raise forbidden(kind, name, "must have cluster-admin privileges to use the aggregationRule")
        return
    reference = document.get("roleRef") or {}
    role_kind, role = reference.get("kind", ""), reference.get("name", "")
    if role_kind not in _PLURALS:
        raise StatusError(500, "", f"unsupported role reference kind: {quoted(role_kind)}")
    bind = Attributes("bind", RBAC_GROUP, _PLURALS[role_kind], namespace=asked.namespace, name=role)
    if access.decide(user, bind).allowed:
        return
    try:
        rules = access.rules_of(role_kind, role, namespace=asked.namespace)
    except RoleNotFound:
        # It names the binding's kind on the real server too.
        raise not_found(kind, role) from None
    if problem := _missing(user, asked.namespace, rules, access=access):
        raise forbidden(kind, name, problem)


def _missing(user: User, namespace: str, wanted: Sequence[Rule], *, access: Access) -> str:
    """What `user` lacks of `wanted`, told as the real server does; empty when nothing."""
    held, problems = access.rules_for(user, namespace)
    missing = missing_from(held, wanted)
    if not missing:
        return ""
    lines = "\n".join(described(missing))
    told = (
        f"user {quoted(user.name)} (groups={listed(user.groups)}) is attempting to grant RBAC permissions "
        f"not currently held:\n{lines}"
    )
    return f"{told}; resolution errors: [{told_together(problems)}]" if problems else told


def _aggregates(role: JsonObject) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _apart_from_the_collector(document: JsonObject) -> JsonObject:
    """Without what a garbage collector changes when it deletes an object whose rights it does not have."""
    metadata = {key: value for key, value in document["metadata"].items() if key not in _OF_THE_COLLECTOR}
    return document | {"metadata": metadata}
