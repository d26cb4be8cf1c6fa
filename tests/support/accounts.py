"""ServiceAccounts with rights of their own, some of which the controller may act as."""

from __future__ import annotations

from kardinal.objects import SERVICE_ACCOUNT, JsonObject
from tests.support.identities import ACCOUNTS, RESOURCES, SYSTEM_NAMESPACE
from tests.support.names import TEAM
from tests.support.people import people_of
from tests.support.world import World

__all__ = ["allow", "lend", "make_account", "rule"]

_RBAC = "rbac.authorization.k8s.io"


def rule(*verbs: str, on: str, group: str = "", names: tuple[str, ...] = ()) -> JsonObject:
    named = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [group], "resources": [on], "verbs": list(verbs), **named}


async def make_account(
    world: World, name: str, *rules: JsonObject, namespace: str = TEAM, lent_to: str = "controller"
) -> None:
    """Make a ServiceAccount with these rights in its namespace, and lend it to a program."""
    metadata = {"name": name, "namespace": namespace}
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    await world.client.apply(SERVICE_ACCOUNT, account, field_manager="test", force=True)
    if rules:
        await allow(world, name, *rules, namespace=namespace)
    await lend(world, name, namespace=namespace, to=lent_to)


async def allow(world: World, account: str, *rules: JsonObject, namespace: str = TEAM, home: str = "") -> None:
    """Give an account of the namespace `home` rights in a namespace, and wait until they hold; they replace earlier."""
    home = home or namespace
    subject = {"kind": "ServiceAccount", "name": account, "namespace": home}
    await _grant(world, f"rights-of-{account}", rules, subject, namespace)
    user = f"system:serviceaccount:{home}:{account}"
    async with people_of(world) as people:
        for each in rules:
            resource = f"{each['resources'][0]}.{each['apiGroups'][0]}"
            name = "".join(each.get("resourceNames", ()))
            await people.until_allowed(user, *((verb, resource, name) for verb in each["verbs"]), namespace=namespace)


async def lend(world: World, account: str, *, namespace: str = TEAM, to: str = "controller") -> None:
    """Let a program act as an account, by a Role in the namespace of the account."""
    program = {"kind": "ServiceAccount", "name": ACCOUNTS[to], "namespace": SYSTEM_NAMESPACE}
    impersonate = rule("impersonate", on="serviceaccounts", names=(account,))
    await _grant(world, f"lend-{account}", (impersonate,), program, namespace)
    async with people_of(world) as people:
        asked = ("impersonate", "serviceaccounts", account)
        await people.until_allowed(world.user(to), asked, namespace=namespace)


async def _grant(world: World, name: str, rules: tuple[JsonObject, ...], subject: JsonObject, namespace: str) -> None:
    metadata = {"name": name, "namespace": namespace}
    version = f"{_RBAC}/v1"
    role: JsonObject = {"apiVersion": version, "kind": "Role", "metadata": metadata, "rules": list(rules)}
    reference = {"apiGroup": _RBAC, "kind": "Role", "name": name}
    binding: JsonObject = {
        "apiVersion": version,
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": reference,
        "subjects": [subject],
    }
    for obj in (role, binding):
        await world.client.apply(RESOURCES[obj["kind"]], obj, field_manager="test", force=True)
