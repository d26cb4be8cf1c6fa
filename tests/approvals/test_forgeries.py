"""Approvals that people write into the API server open no gate by themselves, whatever they claim."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.kube import Invalid
from kardinal.objects import NAMESPACE, JsonObject
from kardinal.promotion.kinds import APPROVAL, POLICY_GATE
from tests.approvals.conftest import GATE, Desk, approval
from tests.support.identities import RESOURCES
from tests.support.names import DEV, POLICIES, STAGING, TEAM, of_run
from tests.support.objects import bundle, gate, namespace

OTHER = of_run("other")


async def put(desk: Desk, made: JsonObject, **status: Any) -> JsonObject:
    """Create an Approval with its status, as an administrator of a cluster without admission policies can."""
    stored = await desk.world.client.create(APPROVAL, made)
    if status:
        metadata = stored["metadata"]
        await desk.world.client.patch(
            APPROVAL, metadata["name"], metadata["namespace"], {"status": status}, subresource="status"
        )
    return stored


@pytest.mark.local_only("the admission policy of a real server refuses the forgery before")
@pytest.mark.parametrize("signature", [None, "", "0" * 64, "\u00e9" * 32])
@pytest.mark.parametrize("via", ["controller", "admission"])
async def test_unsigned_one_does_not_count(desk: Desk, via: str, signature: str | None) -> None:
    await put(desk, approval("forged", desk.bundle, via=via), **({"signature": signature} if signature else {}))
    await desk.stays_closed()


async def test_label_or_annotation_proves_nothing(desk: Desk) -> None:
    made = approval("claimed", desk.bundle, via="controller")
    made["metadata"] |= {
        "labels": {"kardinal.io/approved": "true", "kardinal.io/gate": "signoff"},
        "annotations": {"kardinal.io/attestation": '{"token":"x","maySkip":[],"issued":1,"mac":"x"}'},
    }
    await put(desk, made)
    await desk.stays_closed()


async def test_signature_of_a_revoked_one_does_not_count_again(desk: Desk) -> None:
    """A user who has seen an Approval creates it again, with its signature, after it was revoked."""
    _, body = await desk.post(await desk.approver())
    await desk.opened()
    stored = await desk.world.get(APPROVAL, body["name"])
    await desk.world.delete(APPROVAL, body["name"])
    await desk.closed()

    metadata = {"name": body["name"], "namespace": TEAM}
    await put(desk, {**stored, "metadata": metadata}, signature=stored["status"]["signature"])

    await desk.stays_closed()


async def test_signature_of_another_bundle_or_environment_does_not_count(desk: Desk) -> None:
    world = desk.world
    _, body = await desk.post(await desk.approver(), environment=STAGING)
    signature = (await world.get(APPROVAL, body["name"]))["status"]["signature"]
    await put(desk, approval("of-dev", desk.bundle, via="controller"), signature=signature)
    await desk.stays_closed()

    [other] = await world.apply(bundle("app-2", tag="2.0.0"))
    await desk.closed(f"app-2-{DEV}-signoff")
    await put(desk, approval("of-other", other, via="controller", environment=STAGING), signature=signature)
    await put(desk, approval("of-other-in-dev", other, via="controller"), signature=signature)
    await desk.stays_closed(f"app-2-{DEV}-signoff")


async def test_gate_of_the_same_name_elsewhere_is_not_approved(desk: Desk) -> None:
    """A team approves at a gate of its own, of the name of the organisation's."""
    await desk.world.apply(gate("signoff", "approvals.size() > 0", applies_to=DEV))
    await desk.world.settle()
    await desk.world.apply(bundle("app-2", tag="2.0.0"))
    names = await instances_of(desk, "app-2")
    assert len(names) == 2
    token = await desk.approver("mallory", namespace=TEAM)

    assert (await desk.post(token, bundle="app-2", gate="signoff"))[0] == 201

    await desk.world.settle()
    ready = {name: (await desk.world.get(POLICY_GATE, name)) for name in names}
    assert {each["spec"]["origin"]["namespace"]: each["status"]["ready"] for each in ready.values()} == {
        TEAM: True,
        POLICIES: False,
    }


async def test_approval_in_another_namespace_does_not_count(desk: Desk) -> None:
    """The uid of a Bundle is no secret: a team names the Bundle of another one."""
    await desk.world.client.apply(RESOURCES[NAMESPACE.kind], namespace(OTHER), field_manager="test", force=True)
    _, body = await desk.post(await desk.approver())
    stored = await desk.world.get(APPROVAL, body["name"])
    await desk.world.delete(APPROVAL, body["name"])
    await desk.closed()

    moved = approval(body["name"], desk.bundle, namespace=OTHER, via="controller")
    await put(desk, moved, signature=stored["status"]["signature"])

    await desk.stays_closed()


@pytest.mark.parametrize(
    "fields",
    [
        {"gate": None},
        {"environment": None},
        {"gate": "signoff"},
        {"gate": f"{GATE}/x"},
        {"approver": "da\x1b[2Jna"},
        {"reason": "a\nb"},
        {"approver": ""},
        {"external": {"name": "change", "approved": True, "signedAt": "2026-03-03T10:00:00Z"}},
        {"external": {"name": "change", "approved": True, "signedAt": "2026-03-03T10:00:00Z"}, "gate": None},
    ],
)
async def test_malformed_one_is_not_stored(desk: Desk, fields: dict[str, Any]) -> None:
    with pytest.raises(Invalid):
        await put(desk, approval("malformed", desk.bundle, **fields))


async def instances_of(desk: Desk, name: str) -> list[str]:
    async def made() -> list[str] | None:
        found = await desk.world.client.list(POLICY_GATE, TEAM)
        names = [
            each["metadata"]["name"]
            for each in found.items
            if each["spec"].get("origin", {}).get("bundle") == name and "ready" in each.get("status", {})
        ]
        return names if len(names) == 2 else None

    await desk.world.until(made)
    return await made() or []
