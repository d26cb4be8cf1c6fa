"""A control plane without an agent, one Bundle that waits at a gate of the organisation, and people who approve."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest

from kardinal.objects import JsonObject
from kardinal.promotion.kinds import APPROVAL, POLICY_GATE
from kardinal_controller.program import ControlPlane
from tests.support.identities import RESOURCES, documents_of
from tests.support.names import DEV, POLICIES, STAGING, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.people import people_of
from tests.support.programs import start_controller
from tests.support.world import World
from tests.ui.viewers import bind, token_of

__all__ = ["GATE", "SIGNED_OFF", "Desk", "approval", "closed", "opened"]

GATE = f"{POLICIES}/signoff"
INSTANCE = f"app-1-{DEV}-signoff"
SIGNED_OFF = "approvals.size() > 0"


@dataclass
class Desk:
    """The place where people approve: requests to the API of the controller, and the gate that waits."""

    world: World
    controller: ControlPlane
    session: aiohttp.ClientSession
    bundle: JsonObject

    async def post(self, token: str | None, *, data: bytes | None = None, **fields: Any) -> tuple[int, Any]:
        """Post an approval; fields that are None are left out."""
        body = {"namespace": TEAM, "bundle": "app-1", "environment": DEV, "gate": GATE, **fields}
        sent: dict[str, Any] = {"json": {name: value for name, value in body.items() if value is not None}}
        headers = {"Authorization": f"Bearer {token}"} if token is not None else {}
        if data is not None:
            sent = {"data": io.BytesIO(data)}
        url = f"{self.controller.api_url}/api/v1/approvals"
        async with self.session.post(url, headers=headers, **sent) as answer:
            return answer.status, await answer.json(content_type=None)

    async def approver(self, name: str = "dana", *, namespace: str = POLICIES) -> str:
        """Return the token of an account that may approve at every gate of a namespace."""
        token = await token_of(self.world, name)
        user = user_of(name)
        await bind(self.world, user, "kardinal-approver", namespace=namespace)
        async with people_of(self.world) as people:
            await people.until_allowed(user, ("approve", "policygates.kardinal.io", "signoff"), namespace=namespace)
        return token

    async def approvals(self) -> list[JsonObject]:
        return list((await self.world.client.list(APPROVAL, TEAM)).items)

    async def opened(self, instance: str = INSTANCE) -> JsonObject:
        return await self.world.wait_for(POLICY_GATE, instance, opened)

    async def closed(self, instance: str = INSTANCE) -> JsonObject:
        return await self.world.wait_for(POLICY_GATE, instance, closed)

    async def stays_closed(self, instance: str = INSTANCE) -> JsonObject:
        """Let the control plane work off all changes; returns the gate, which is still closed."""
        await self.world.settle()
        found = await self.world.get(POLICY_GATE, instance)
        assert closed(found), found.get("status")
        return found


def user_of(account: str) -> str:
    return f"system:serviceaccount:{TEAM}:{account}"


def opened(obj: JsonObject) -> bool:
    return obj.get("status", {}).get("ready") is True


def closed(obj: JsonObject) -> bool:
    return obj.get("status", {}).get("ready") is False


def approval(name: str, bundle: JsonObject, *, namespace: str = TEAM, **spec: Any) -> JsonObject:
    """Return an Approval of a stored Bundle as a person would create it; fields that are None are left out."""
    fields = {
        "bundle": bundle["metadata"]["name"],
        "uid": bundle["metadata"]["uid"],
        "environment": DEV,
        "gate": GATE,
        "approver": user_of("dana"),
        **spec,
    }
    return {
        "apiVersion": APPROVAL.api_version,
        "kind": APPROVAL.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {field: value for field, value in fields.items() if value is not None},
    }


@pytest.fixture
def options() -> dict[str, Any]:
    """Return further options of the controller; a test module has its own."""
    return {}


@pytest.fixture
async def desk(world: World, options: dict[str, Any]) -> AsyncIterator[Desk]:
    for role in documents_of("roles.yaml"):
        await world.client.apply(RESOURCES[role["kind"]], role, field_manager="test", force=True)
    await world.apply(
        pipeline("https://git.example.com/acme/gitops.git", provider="git", environments=[DEV, STAGING]),
        gate("signoff", SIGNED_OFF, applies_to=None, namespace=POLICIES, appliesTo=[DEV, STAGING]),
    )
    controller = await start_controller(world, standalone=False, **options)
    await world.settle()
    [made] = await world.apply(bundle("app-1"))
    await world.wait_for(POLICY_GATE, INSTANCE, closed)
    async with aiohttp.ClientSession() as session:
        yield Desk(world, controller, session, made)
