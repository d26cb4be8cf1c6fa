"""One webhook of a host for many Pipelines: the path of a namespace."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import aiohttp
import orjson
import pytest
from structlog.testing import capture_logs

from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import CREDENTIALS_WEBHOOK, LABEL_CREDENTIALS
from kardinal.promotion.kinds import PIPELINE
from kardinal_controller.http import hosts
from tests.http.conftest import REPOSITORY, Program, start_api
from tests.support.names import TEAM, of_run
from tests.support.objects import namespace, pipeline
from tests.support.secret_values import secret_value
from tests.support.world import World

OURS = secret_value("of-the-organisation")
THEIRS = secret_value("of-another-pipeline")
OTHER_TEAM = of_run("other-team")


def secret(name: str, value: str, *, of: str = TEAM) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": of, "labels": {LABEL_CREDENTIALS: CREDENTIALS_WEBHOOK}},
        "data": {"webhookSecret": base64.b64encode(value.encode()).decode()},
    }


def watched(
    name: str, *, url: str = REPOSITORY, signed_with: str = "ours", provider: str = "gitea", of: str = TEAM
) -> JsonObject:
    """Return a Pipeline that is woken by every new pull request."""
    made = pipeline(url, name=name, provider=provider, namespace=of)
    made["spec"]["git"] |= {"webhookSecretRef": {"name": signed_with}, "statusOnOthers": True}
    return made


def opened(repository: str = REPOSITORY) -> JsonObject:
    pull = {"number": 9, "head": {"ref": "change", "sha": "a" * 40}}
    return {"action": "opened", "pull_request": pull, "repository": {"clone_url": repository}}


class Host:
    """The sender of deliveries of any provider."""

    def __init__(self, program: Program, session: aiohttp.ClientSession) -> None:
        self._url = program.api.url
        self._session = session

    async def deliver(
        self, payload: Any, *, provider: str = "gitea", signed_with: str = OURS, to: str = TEAM
    ) -> tuple[int, str]:
        body = payload if isinstance(payload, bytes) else orjson.dumps(payload)
        signature = hmac.new(signed_with.encode(), body, hashlib.sha256).hexdigest()
        headers = {
            "gitea": {"X-Gitea-Signature": signature},
            "forgejo": {"X-Forgejo-Signature": signature},
            "github": {"X-Hub-Signature-256": f"sha256={signature}"},
            "gitlab": {"X-Gitlab-Token": signed_with},
        }.get(provider, {"X-Gitea-Signature": signature})
        path = f"{self._url}/webhooks/{provider}/{to}"
        async with self._session.post(path, data=body, headers=headers) as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def host(world: World, session: aiohttp.ClientSession) -> Host:
    await world.apply(namespace(OTHER_TEAM), secret("ours", OURS), secret("theirs", THEIRS))
    return Host(await start_api(world), session)


def secret_reads(world: World) -> int:
    return world.audit.count(verbs={"get"}, resource="secrets", user=world.user("controller"))


async def woken(world: World, *names: str, of: str = TEAM) -> list[str]:
    """Return those of the Pipelines that were woken."""
    await world.settle()
    found = {name: await world.get(PIPELINE, name, of) for name in names}
    return [name for name, each in found.items() if (each.get("status") or {}).get("wokenAt")]


@pytest.mark.parametrize("provider", ["forgejo", "gitea", "github", "gitlab"])
async def test_one_delivery_wakes_every_pipeline_of_its_repository(world: World, host: Host, provider: str) -> None:
    other = "https://git.example.com/acme/other.git"
    await world.apply(
        watched("shop", provider=provider),
        watched("web", provider=provider),
        watched("elsewhere", provider=provider, url=other),
    )
    await world.settle()
    merge_request = {
        "object_kind": "merge_request",
        "object_attributes": {"iid": 9, "action": "open"},
        "project": {"git_http_url": REPOSITORY},
    }
    payload = merge_request if provider == "gitlab" else opened()
    assert (await host.deliver(payload, provider=provider))[0] == 202
    assert await woken(world, "shop", "web", "elsewhere") == ["shop", "web"]


async def test_a_pipeline_is_woken_by_its_own_secret_alone(world: World, host: Host) -> None:
    await world.apply(watched("shop"), watched("web", signed_with="theirs"))
    await world.settle()
    assert (await host.deliver(opened()))[0] == 202
    assert await woken(world, "shop", "web") == ["shop"]
    assert (await host.deliver(opened(), signed_with=THEIRS))[0] == 202
    assert await woken(world, "shop", "web") == ["shop", "web"]


async def test_pipelines_of_another_namespace_or_provider_are_not_woken(world: World, host: Host) -> None:
    await world.apply(
        secret("ours", OURS, of=OTHER_TEAM),
        watched("shop"),
        watched("shop", of=OTHER_TEAM),
        watched("mirror", provider="forgejo"),
    )
    await world.settle()
    assert (await host.deliver(opened()))[0] == 202
    assert await woken(world, "shop", "mirror") == ["shop"]
    assert await woken(world, "shop", of=OTHER_TEAM) == []


@pytest.mark.parametrize(
    "told",
    ["http://gitea.internal:3000/acme/GitOps", "https://git.example.com/git/acme/gitops.git", "git@host:acme/gitops"],
)
async def test_the_repository_is_told_by_its_path_whatever_the_host_calls_itself(
    world: World, host: Host, told: str
) -> None:
    await world.apply(watched("shop"), watched("by-ssh", url="ssh://git@git.example.com/acme/gitops"))
    await world.settle()
    assert (await host.deliver(opened(told)))[0] == 202
    assert await woken(world, "shop", "by-ssh") == ["shop", "by-ssh"]


@pytest.mark.parametrize(
    "told", ["", "https://git.example.com/acme/unknown", "https://git.example.com/s", "/srv/gitops"]
)
async def test_a_signed_delivery_about_no_repository_of_a_pipeline_is_taken_and_wakes_nothing(
    world: World, host: Host, told: str
) -> None:
    await world.apply(watched("shop"))
    await world.settle()
    writes = world.audit.writes
    assert (await host.deliver(opened(told)))[0] == 202
    assert await woken(world, "shop") == []
    assert world.audit.writes == writes


async def test_unauthenticated_request_gets_the_same_answer_on_every_path(world: World, host: Host) -> None:
    await world.apply(watched("shop"), watched("unsecured", signed_with="no-such-secret"))
    await world.settle()
    zeros = "\0" * 32
    answers = [
        await host.deliver(opened(), signed_with="a-guess-of-some-length"),
        await host.deliver(opened(), signed_with=zeros),
        await host.deliver(opened(), signed_with=zeros, to=OTHER_TEAM),
        await host.deliver(opened(), to=OTHER_TEAM),
        await host.deliver(opened(), to=of_run("no-such-namespace")),
        await host.deliver(opened(), provider="forgejo"),
        await host.deliver(opened(), provider="no-such-provider"),
        await host.deliver(b"not json", signed_with="a-guess-of-some-length"),
        await host.deliver(opened(), signed_with="a-guess-of-some-length", to=f"{TEAM}/shop"),
    ]
    assert {status for status, _ in answers} == {401}
    assert len({text for _, text in answers}) == 1
    assert await woken(world, "shop", "unsecured") == []


async def test_a_delivery_is_compared_with_a_bounded_number_of_secrets(world: World, host: Host) -> None:
    names = [f"secret-{index:02}" for index in range(hosts.COMPARED + 4)]
    values = {name: secret_value(name) for name in names}
    await world.apply(*(secret(name, value) for name, value in values.items()))
    await world.apply(*(watched(f"app-{name}", signed_with=name) for name in names))
    await world.settle()
    before = secret_reads(world)
    with capture_logs() as lines:
        assert (await host.deliver(opened(), signed_with=values[names[-1]]))[0] == 401
    assert names[-1] in str(lines)
    assert secret_reads(world) - before == hosts.COMPARED
    assert (await host.deliver(opened(), signed_with=values[names[0]]))[0] == 202
    assert await woken(world, f"app-{names[0]}", f"app-{names[-1]}") == [f"app-{names[0]}"]


async def test_every_delivery_is_compared_with_equally_many_secrets(
    world: World, host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[bytes] = []
    whole = hmac.compare_digest

    def counted(one: Any, other: Any) -> bool:
        compared.append(one)
        return whole(one, other)

    await world.apply(watched("shop"), watched("web", signed_with="theirs"))
    await world.settle()
    await host.deliver(opened())
    monkeypatch.setattr(hmac, "compare_digest", counted)
    counts = set()
    for payload, key, to in [
        (opened(), OURS, TEAM),
        (opened(), THEIRS, TEAM),
        (opened(), "a-guess-of-some-length", TEAM),
        (opened(), OURS, of_run("no-such-namespace")),
    ]:
        compared.clear()
        await host.deliver(payload, signed_with=key, to=to)
        counts.add(len(compared))
    assert counts == {hosts.COMPARED}


async def test_the_rate_of_a_pipeline_is_counted_over_both_paths(world: World, host: Host) -> None:
    await world.apply(watched("shop"), watched("web"))
    await world.settle()
    for _ in range(300):
        assert (await host.deliver(opened(), to=f"{TEAM}/shop"))[0] == 202
        assert (await host.deliver(opened()))[0] == 202
    assert (await host.deliver(opened(), to=f"{TEAM}/shop"))[0] == 429
    # One of its Pipelines still takes deliveries.
    assert (await host.deliver(opened()))[0] == 202
