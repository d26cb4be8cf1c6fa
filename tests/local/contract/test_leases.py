"""Leases: who holds them is decided by who saw them last."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.local.contract.wire import Api

covers = pytest.mark.covers

MOMENT = "2026-01-02T03:04:05.000006Z"


def leases(api: Api, name: str = "") -> str:
    return api.path("leases", name, group="coordination.k8s.io")


def lease(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": spec}


@covers("leases", "update", "conflict")
async def test_a_lease_is_taken_by_whoever_saw_it_last(api: Api) -> None:
    seen = (await api.post(leases(api), lease(holderIdentity="a", leaseDurationSeconds=15, renewTime=MOMENT))).body
    assert (await api.put(leases(api, "l"), seen | {"spec": {"holderIdentity": "b"}})).status == 200
    late = await api.put(leases(api, "l"), seen | {"spec": {"holderIdentity": "c"}})
    assert (late.status, late.body["reason"]) == (409, "Conflict")


@covers("leases", "create", "success")
@pytest.mark.parametrize("validation", ["Warn", "Strict"])
async def test_what_coordinated_elections_need_is_left_out_while_they_are_off(api: Api, validation: str) -> None:
    wanted = {"holderIdentity": "a", "strategy": "OldestEmulationVersion", "preferredHolder": "b"}
    created = await api.post(leases(api), lease(**wanted), fieldValidation=validation)
    assert (created.status, created.body["spec"]) == (201, {"holderIdentity": "a"})
    changed = await api.merge(leases(api, "l"), {"spec": wanted}, fieldValidation=validation)
    assert changed.body["spec"] == {"holderIdentity": "a"}


@covers("leases", "update", "conflict")
async def test_one_of_many_takes_a_lease(api: Api) -> None:
    silent = api.silent
    seen = (await silent.post(leases(api), lease(holderIdentity="nobody"))).body
    for round_number in range(3):
        bids = [
            silent.put(leases(api, "l"), seen | {"spec": {"holderIdentity": f"{round_number}-{bidder}"}})
            for bidder in range(10)
        ]
        answers = await asyncio.gather(*bids)
        (winner,) = [answer for answer in answers if answer.status == 200]
        assert [answer.status for answer in answers].count(409) == 9
        seen = (await silent.get(leases(api, "l"))).body
        assert seen == winner.body


@covers("leases", "create", "conflict")
async def test_one_of_many_makes_a_lease(api: Api) -> None:
    silent = api.silent
    bids = [silent.post(leases(api), lease(holderIdentity=str(bidder))) for bidder in range(10)]
    assert sorted(answer.status for answer in await asyncio.gather(*bids)) == [201] + [409] * 9


@covers("leases", "update", "refusal")
async def test_a_lease_is_replaced_by_somebody_who_has_seen_it_only(api: Api) -> None:
    await api.post(leases(api), lease(holderIdentity="a"))
    assert (await api.put(leases(api, "l"), lease(holderIdentity="b"))).status == 422
    assert (await api.merge(leases(api, "l"), {"spec": {"holderIdentity": "b"}})).status == 200


@covers("leases", "create", "success")
@pytest.mark.parametrize(
    "moment",
    ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05.1Z", "2026-01-02T03:04:05.123456789Z", "2026-01-02T03:04:05+02:00"],
)
async def test_moments_of_a_lease_have_microseconds(api: Api, moment: str) -> None:
    created = await api.silent.post(leases(api), lease(renewTime=moment, acquireTime=moment))
    api.note("times", [created.status, created.body.get("message")])
    if created.status == 201:
        # Noted as text: a moment that the server wrote is no constant of the case.
        api.note("kept", created.body["spec"]["renewTime"].replace("T", " "))


@covers("leases", "create", "refusal")
@pytest.mark.parametrize(
    "spec",
    [
        {"leaseDurationSeconds": 0},
        {"leaseDurationSeconds": -1},
        {"leaseDurationSeconds": "long"},
        {"leaseTransitions": -1},
        {"renewTime": "soon"},
        {"renewTime": ""},
        {"holderIdentity": ""},
        {"holderIdentity": 1},
        {"strategy": "OldestEmulationVersion"},
        {"strategy": "odd strategy"},
        {"preferredHolder": "b"},
        {},
    ],
    ids=[
        *("no-time", "less-than-no-time", "long", "transitions", "soon", "no-moment", "nobody", "number"),
        *("strategy", "odd-strategy", "preferred", "nothing"),
    ],
)
async def test_a_lease_is_checked(api: Api, spec: dict[str, Any]) -> None:
    await api.post(leases(api), lease(**spec))
