"""`kardinal approve`: by the controller where its URL is known, else as the person."""

from __future__ import annotations

import json
import re

import pytest

from kardinal.objects import CONFIG_MAP
from kardinal.promotion.kinds import APPROVAL
from tests.approvals.conftest import GATE, Desk, user_of
from tests.cli.in_process import InProcess
from tests.support.identities import SYSTEM_NAMESPACE
from tests.support.names import DEV, POLICIES, STAGING, TEAM
from tests.support.objects import bundle, gate
from tests.support.people import people_of

APPROVE = ("approve", "app-1", "--env", DEV)


@pytest.fixture
async def dana(desk: Desk) -> InProcess:
    """Return the command of an account that promotes in the team, and approves at the gates of the organisation."""
    world = desk.world
    home = world.new_directory("home")
    home.mkdir()
    user = user_of("dana")
    async with people_of(world) as people:
        kubeconfig = await people.kubeconfig_of_account("dana", home)
        await people.bind(user, "kardinal-promoter")
        await people.bind(user, "kardinal-approver", namespace=POLICIES)
        await people.until_allowed(user, ("create", "approvals.kardinal.io"), ("get", "graphs.experimental.kro.run"))
        await people.until_allowed(user, ("approve", "policygates.kardinal.io", "signoff"), namespace=POLICIES)
    command = InProcess(kubeconfig, home)
    command.environment["KARDINAL_URL"] = desk.controller.api_url
    return command


async def test_command_posts_to_the_controller(desk: Desk, dana: InProcess) -> None:
    done = await dana.attempt(*APPROVE, "--reason", "looks\n good", "--for", "1h")

    assert (done.code, done.err) == (0, ""), done
    assert re.fullmatch(
        rf"approval.kardinal.io/app-1-signoff-\w+ created: Bundle app-1 at gate {GATE} before {DEV}\n", done.out
    )
    await desk.opened()
    [stored] = await desk.approvals()
    assert (stored["spec"]["reason"], stored["spec"]["via"]) == ("looks good", "controller")
    assert "expiresAt" in stored["spec"]


async def test_output_is_json(desk: Desk, dana: InProcess) -> None:
    done = await dana.attempt(*APPROVE, "--gate", "signoff", "-o", "json")
    found = json.loads(done.out)
    assert found.pop("name").startswith("app-1-signoff-")
    assert found == {"namespace": TEAM, "bundle": "app-1", "environment": DEV, "gate": GATE, "via": "controller"}


async def test_without_a_url_the_person_creates_it_and_is_told(desk: Desk, dana: InProcess) -> None:
    del dana.environment["KARDINAL_URL"]
    done = await dana.attempt(*APPROVE)

    assert done.code == 0, done
    assert "KARDINAL_URL is not set, so you have created it yourself" in done.err
    assert "--approvals-by-admission" in done.err
    [stored] = await desk.approvals()
    assert stored["spec"] == {
        "bundle": "app-1",
        "uid": desk.bundle["metadata"]["uid"],
        "environment": DEV,
        "gate": GATE,
        "approver": user_of("dana"),
        "via": "admission",
    }
    await desk.stays_closed()


async def test_local_plane_says_where_its_controller_is(desk: Desk, dana: InProcess) -> None:
    """A ConfigMap that names a server elsewhere gets no token."""
    del dana.environment["KARDINAL_URL"]
    reader = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    async with people_of(desk.world) as people:
        await people.role("test-info", reader)
        await people.bind(user_of("dana"), "test-info", namespace=SYSTEM_NAMESPACE)
        await people.until_allowed(user_of("dana"), ("get", "configmaps"), namespace=SYSTEM_NAMESPACE)
    for url, via in (("https://thief.example.com", "admission"), (desk.controller.api_url, "controller")):
        info = {
            "apiVersion": "v1",
            "kind": CONFIG_MAP.kind,
            "metadata": {"name": "kardinal-info", "namespace": SYSTEM_NAMESPACE},
            "data": {"api": url},
        }
        await desk.world.client.apply(CONFIG_MAP, info, field_manager="test", force=True)
        done = await dana.attempt(*APPROVE, "-o", "json")
        assert json.loads(done.out)["via"] == via
    await desk.world.delete(CONFIG_MAP, "kardinal-info", SYSTEM_NAMESPACE)


async def test_token_is_not_sent_in_the_clear(desk: Desk, dana: InProcess) -> None:
    dana.environment["KARDINAL_URL"] = "http://kardinal.example.com"
    done = await dana.attempt(*APPROVE)
    assert done.code == 1
    assert "a token is not sent to http://kardinal.example.com in the clear" in done.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("app-9", "--env", DEV), "no Bundle app-9"),
        (("app-1", "--env", "nowhere"), "no gate holds Bundle app-1 before nowhere"),
        (("app-1", "--env", DEV, "--gate", "sign"), f"There are: {GATE}"),
    ],
)
async def test_mistake_is_told_with_what_there_is(
    desk: Desk, dana: InProcess, arguments: tuple[str, ...], message: str
) -> None:
    done = await dana.attempt("approve", *arguments)
    assert (done.code, message in done.err) == (1, True), done


async def test_duration_must_be_one(desk: Desk, dana: InProcess) -> None:
    done = await dana.attempt(*APPROVE, "--for", "soon")
    assert (done.code, "--for" in done.err) == (2, True)


async def test_gate_is_named_where_several_read_approvals(desk: Desk, dana: InProcess) -> None:
    await desk.world.apply(
        gate("second", "approvals.size() > 1", applies_to=DEV),
        gate("other", "true", applies_to=DEV),
    )
    await desk.world.settle()
    await desk.world.apply(bundle("app-2", tag="2.0.0"))
    await desk.closed(f"app-2-{DEV}-signoff")

    done = await dana.attempt("approve", "app-2", "--env", DEV)

    assert done.code == 1
    assert "Name one with --gate" in done.err
    assert f"{TEAM}/second" in done.err
    assert f"{TEAM}/other" not in done.err
    chosen = await dana.attempt("approve", "app-2", "--env", DEV, "--gate", "second")
    assert (chosen.code, "may not approve at gate" in chosen.err) == (1, True), "the right is for the other namespace"


async def test_other_environment_is_approved_before_it_is_reached(desk: Desk, dana: InProcess) -> None:
    done = await dana.attempt("approve", "app-1", "--env", STAGING, "-o", "json")
    assert done.code == 0, done
    stored = await desk.world.get(APPROVAL, json.loads(done.out)["name"])
    assert stored["spec"]["environment"] == STAGING
    await desk.stays_closed()
