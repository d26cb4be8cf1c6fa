"""Approvals that people create count only while the cluster is proven to refuse forged ones."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from kardinal.kube import ApiError, ConnectionFailed, Forbidden
from kardinal.objects import NAMESPACE, JsonObject, ResourceType
from kardinal.promotion.kinds import APPROVAL, BUNDLE
from kardinal_controller.approvals.admission import FORGED_APPROVER, INTERVAL, LONGEST, REFUSED, AdmissionProof
from tests.approvals.conftest import Desk, approval, user_of
from tests.support.clock import VirtualClock
from tests.support.identities import RESOURCES, SYSTEM_NAMESPACE, documents_of
from tests.support.names import POLICIES, TEAM, of_run
from tests.support.objects import namespace
from tests.support.people import People, people_of
from tests.support.real import RealServer

OTHER = of_run("other")
DENIED = (
    f"ValidatingAdmissionPolicy 'kardinal-approvals' with binding 'kardinal-approvals' denied request: {REFUSED}; …"
)


@pytest.fixture
def options() -> dict[str, Any]:
    return {"approvals_by_admission": True}


@pytest.fixture
def enforced(real_server: RealServer | None) -> None:
    """Skip where no server asks the admission policies."""
    if real_server is None:
        pytest.skip("a local plane keeps admission policies and does not ask them")


@pytest.fixture
async def people(enforced: None, desk: Desk) -> AsyncIterator[People]:
    """Return users of whom dana may approve, and all may create Approvals."""
    async with people_of(desk.world) as found:
        for name in ("dana", "lee"):
            await found.bind(user_of(name), "kardinal-promoter")
            await found.until_allowed(user_of(name), ("create", "approvals.kardinal.io"))
        await found.bind(user_of("dana"), "kardinal-approver", namespace=POLICIES)
        await found.until_allowed(
            user_of("dana"), ("approve", "policygates.kardinal.io", "signoff"), namespace=POLICIES
        )
        yield found


def test_policy_answers_in_the_words_that_are_looked_for() -> None:
    [policy, _] = documents_of("admission/approvals.yaml")
    assert policy["spec"]["validations"][0]["message"].startswith(REFUSED)


async def test_one_that_a_person_creates_counts_with_the_policy(desk: Desk, people: People) -> None:
    answer = await people[user_of("dana")].create(APPROVAL, approval("mine", desk.bundle))
    assert answer.status == 201, answer
    await desk.opened()

    await desk.world.delete(APPROVAL, "mine")
    await desk.closed()


async def test_one_in_another_namespace_than_its_bundle_does_not_count(desk: Desk, people: People) -> None:
    await desk.world.client.apply(RESOURCES[NAMESPACE.kind], namespace(OTHER), field_manager="test", force=True)
    dana = await people.bind(user_of("dana"), "kardinal-promoter", namespace=OTHER)
    await people.until_allowed(dana.name, ("create", "approvals.kardinal.io"), namespace=OTHER)

    answer = await dana.create(APPROVAL, approval("mine", desk.bundle, namespace=OTHER))
    # The gate is evaluated again after a change of its Bundle.
    await desk.world.client.patch(BUNDLE, "app-1", TEAM, {"metadata": {"labels": {"looked": "at"}}})

    assert answer.status == 201, answer
    await desk.stays_closed()


async def test_forged_one_is_refused_by_the_policy(desk: Desk, people: People) -> None:
    lee = people[user_of("lee")]
    in_the_name_of_another = await lee.create(APPROVAL, approval("forged", desk.bundle))
    without_the_right = await lee.create(APPROVAL, approval("mine", desk.bundle, approver=user_of("lee")))
    elsewhere = await people[user_of("dana")].create(
        APPROVAL, approval("elsewhere", desk.bundle, gate=f"{TEAM}/signoff")
    )

    assert REFUSED in in_the_name_of_another.message
    assert [answer.status for answer in (in_the_name_of_another, without_the_right, elsewhere)] == [403] * 3
    assert "may not approve" in without_the_right.message
    assert (await lee.create(APPROVAL, approval("claims", desk.bundle, via="controller"))).status == 201
    await desk.stays_closed()


async def test_none_counts_where_forged_ones_are_accepted(desk: Desk, real_server: RealServer | None) -> None:
    if real_server is not None:
        pytest.skip("a real server asks the policies")
    await desk.world.client.create(APPROVAL, approval("mine", desk.bundle))
    await desk.stays_closed()
    assert "kardinal-admission-probe" not in {each["metadata"]["name"] for each in await desk.approvals()}


class Server:
    """The answers of an API server to the tries of the controller."""

    def __init__(self) -> None:
        self.answer: ApiError | ConnectionFailed | None = Forbidden(403, message=DENIED)
        self.asked: list[JsonObject] = []

    async def create(self, resource: ResourceType, obj: JsonObject, *, dry_run: bool = False, **_: Any) -> JsonObject:
        assert dry_run
        self.asked.append(obj)
        if self.answer is not None:
            raise self.answer
        return obj


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
async def proof(server: Server, clock: VirtualClock) -> AsyncIterator[AdmissionProof]:
    client: Any = server
    found = AdmissionProof(client, namespace=SYSTEM_NAMESPACE, clock=clock)
    yield found
    await found.stop()


async def test_forgery_is_tried_at_the_start_and_every_hour(
    server: Server, clock: VirtualClock, proof: AdmissionProof
) -> None:
    changes: list[bool] = []
    proof.on_change(lambda: changes.append(proof.holds))
    assert not proof.holds

    await proof.start()
    assert proof.holds
    assert [each["spec"]["approver"] for each in server.asked] == [FORGED_APPROVER]

    server.answer = None
    await clock.advance(INTERVAL)
    assert not proof.holds, "the policy was taken away"
    server.answer = Forbidden(403, message=DENIED)
    await clock.advance(INTERVAL)
    assert changes == [True, False, True]


@pytest.mark.parametrize(
    "answer",
    [
        Forbidden(403, message='approvals.kardinal.io is forbidden: User "x" cannot create resource "approvals"'),
        Forbidden(403, message="ValidatingAdmissionPolicy 'kardinal-approvals' denied request: may not approve"),
        Forbidden(403, message=f'admission webhook "x" denied the request: {REFUSED}'),
        ConnectionFailed("the server is down"),
    ],
)
async def test_another_error_proves_nothing(
    server: Server, clock: VirtualClock, proof: AdmissionProof, answer: ApiError | ConnectionFailed
) -> None:
    server.answer = answer
    await proof.start()
    assert not proof.holds
    server.answer = Forbidden(403, message=DENIED)
    await clock.advance(60)
    assert proof.holds, "it is tried again soon"

    server.answer = answer
    await clock.advance(INTERVAL)
    assert proof.holds, "the last proof is an hour old"
    await clock.advance(LONGEST)
    assert not proof.holds
