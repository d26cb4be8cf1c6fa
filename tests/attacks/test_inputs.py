"""Attacks by way of an input: its URL, its Secret, its refs, and what is in it."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kardinal.git.addresses import HostAddresses
from kardinal.objects import JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, LABEL_CREDENTIALS
from kardinal.promotion.translation.errors import InvalidSpec
from tests.agent.inputs import copying, platform_repository, with_inputs
from tests.agent.promotion_steps import create, promotion_step, reached, start_agent
from tests.support.names import DEV, TEAM
from tests.support.objects import environment
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD, USER, SmartServer, serving
from tests.support.world import World
from tests.translation.values import bundle, pipeline, translated

OWN = "https://git.example.org/acme/gitops"


@pytest.fixture
def platform(tmp_path: Path) -> GitRepository:
    return platform_repository(tmp_path)


@pytest.fixture
def server(platform: GitRepository, certificate: Path) -> Iterator[SmartServer]:
    """Yield an HTTPS server of `platform.git`, which leaves out files."""
    platform.git("config", "uploadpack.allowFilter", "true")
    with serving(platform.path.parent, certificate) as server:
        yield server


def secret(hosts: str, name: str = "platform") -> JsonObject:
    data = {"username": USER, "password": PASSWORD}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": TEAM,
            "labels": {LABEL_CREDENTIALS: CREDENTIALS_GIT},
            "annotations": {ANNOTATION_HOSTS: hosts},
        },
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
    }


def opening(url: str, **config: Any) -> JsonObject:
    return {"uses": "git-clone", "as": "platform", "config": {"url": url, **config}}


async def refused(world: World, *steps: JsonObject, **options: Any) -> list[str]:
    """Promote one Bundle in the environments of some PromotionSteps; return why each of them failed."""
    await start_agent(world, **options)
    await create(world, *steps)
    return [(await reached(world, "Failed", step["spec"]["environment"]))["message"] for step in steps]


def problem(**config: Any) -> tuple[str, str]:
    """Return field and reason of what translation has against an input, with the default flags."""
    uses = [{"uses": name} for name in ("git-commit", "git-push", "health-check")]
    steps = [{"uses": "git-clone"}, opening(**config), copying(), *uses]
    way = pipeline(environment("dev", steps=steps), url=OWN, provider="git")
    with pytest.raises(InvalidSpec) as caught:
        translated(way, bundle(), local=False)
    (found,) = caught.value.problems
    return found.field.removeprefix("spec.environments[0].steps[1].config."), found.reason


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("file:///etc/secrets", ("url", "LocalRepositoryRefused")),
        ("/etc/secrets", ("url", "LocalRepositoryRefused")),
        ("http://git.example.org/x", ("url", "InvalidRepositoryURL")),
        ("https://me:pw@git.example.org/x", ("url", "InvalidRepositoryURL")),
        ("https://git.example.org/../x", ("url", "InvalidRepositoryURL")),
        ("https://2130706433/x", ("url", "InvalidRepositoryURL")),
        ("ext::sh -c id", ("url", "InvalidRepositoryURL")),
        ("ssh://git@git.example.org/x", ("secretRef", "SecretMissing")),
    ],
)
def test_the_url_of_an_input_is_held_to_the_rules_of_every_url(url: str, expected: tuple[str, str]) -> None:
    assert problem(url=url) == expected


async def test_an_agent_reads_no_local_repository_without_the_flag(
    world: World, platform: GitRepository, server: SmartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A PromotionStep made by hand passes by translation. The server stands for a host that is not on this machine."""
    monkeypatch.setattr(HostAddresses, "check", lambda *_: True)
    await world.apply(secret(server.url.removeprefix("https://"), "own"))
    step = with_inputs(f"{server.url}/platform.git", opening(platform.url), copying(), provider="git")
    step["spec"]["git"]["secretRef"] = {"name": "own"}
    await start_agent(world, allow_local_repositories=False)
    await create(world, step)
    message = (await reached(world, "Failed"))["message"]
    assert message.startswith(f"git-clone: input platform: {platform.url} is a local repository, and those are refused")


async def test_a_host_that_the_operator_does_not_allow_is_not_asked(
    world: World, repository: GitRepository, server: SmartServer
) -> None:
    url = f"{server.url}/platform.git"
    step = with_inputs(repository, opening(url), copying())
    [said] = await refused(world, step, allow_git_hosts=("git.example.org",))
    assert "is none of the Git hosts that --allow-git-hosts permits" in said
    assert server.requests == []


async def test_a_secret_goes_only_to_a_host_that_it_names(
    world: World, repository: GitRepository, server: SmartServer
) -> None:
    """Neither the one that the input names nor that of the Pipeline, which is for another host."""
    await world.apply(secret("git.example.org"))
    attacks = {
        "named": ({"secretRef": {"name": "platform"}}, "input platform: config.secretRef: Secret"),
        "unnamed": ({}, "asks for credentials"),
    }
    steps = []
    for name, (config, _) in attacks.items():
        step = with_inputs(repository, opening(f"{server.url}/platform.git", **config), copying(), environment=name)
        step["spec"]["git"]["secretRef"] = {"name": "platform"}
        steps.append(step)
    messages = await refused(world, *steps)
    assert set(server.authorisations) <= {None}
    for message, (_, expected) in zip(messages, attacks.values(), strict=True):
        assert PASSWORD not in message
        assert expected in message


async def test_a_secret_that_names_the_host_is_sent_there_and_shown_nowhere(
    world: World, repository: GitRepository, server: SmartServer
) -> None:
    await world.apply(secret(server.url.removeprefix("https://")))
    step = with_inputs(
        repository,
        opening(f"{server.url}/platform.git", secretRef={"name": "platform"}),
        copying(),
        {"uses": "kustomize-set-image"},
    )
    await start_agent(world)
    await create(world, step)
    status = await reached(world, "HealthChecking")
    assert repository.read(f"environments/{DEV}/base/service.yaml").startswith("kind: Service")
    assert PASSWORD not in str(status)


async def test_a_ref_does_not_leave_the_references(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    """The sequence of a PromotionStep made by hand is checked by the agent."""
    step = with_inputs(repository, opening(platform.url, branch="../../objects/x"), copying())
    [said] = await refused(world, step)
    assert said.startswith("steps[1].config.branch: is no name of a branch or tag that Git accepts")


def link(repository: GitRepository, path: str, target: str, *, branch: str) -> None:
    script = f"commit refs/heads/{branch}\ncommitter X <x@example.com> now\ndata 4\nlink\nfrom refs/heads/main^0\n"
    content = f"M 120000 inline {path}\ndata {len(target)}\n{target}\n"
    repository.git("fast-import", "--quiet", "--date-format=now", stdin=script + content)


LINKS = {
    "file-outside": ("bases/web/x.yaml", "/etc/passwd", "bases/web"),
    "file": ("bases/web/x.yaml", "../../other/x.yaml", "bases/web/x.yaml"),
    "directory": ("linked", "bases", "linked/web"),
    "directory-above": ("bases/web/up", "../../..", "bases/**"),
}


async def test_a_symbolic_link_in_an_input_is_not_followed(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    steps = []
    for name, (path, points, source) in LINKS.items():
        link(platform, path, points, branch=name)
        steps.append(
            with_inputs(
                repository,
                opening(platform.url, branch=name),
                copying(source),
                environment=name,
                path=f"environments/{DEV}",
            )
        )
    before = repository.head()
    for said in await refused(world, *steps):
        assert "is a symbolic link" in said
        assert said.startswith("copy: platform:/")
    assert repository.head() == before


async def test_a_name_with_dots_in_an_input_does_not_leave_the_environment(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    """Git does not check what other programs write into a tree."""
    blob = platform.git("hash-object", "-w", "--stdin", stdin="evil\n")
    inner = platform.git("mktree", stdin=f"100644 blob {blob}\tprod.yaml\n")
    outer = platform.git("mktree", stdin=f"040000 tree {inner}\t..\n")
    tree = platform.git("mktree", stdin=f"040000 tree {outer}\tbases\n")
    platform.git("update-ref", "refs/heads/main", platform.git("commit-tree", tree, "-m", "evil"))
    before = repository.head()
    [said] = await refused(world, with_inputs(repository, opening(platform.url), copying("bases")))
    assert "`..` is not allowed" in said
    assert repository.head() == before


HUGE: dict[str, tuple[dict[str, str], str]] = {
    "many": ({f"many/{number}.yaml": "x\n" for number in range(1_001)}, "names more than 1,000 files"),
    "big.yaml": (
        {"big.yaml": "x" * ((4 << 20) + 1)},
        "4,194,304 are read",
    ),
    "large.yaml": ({"large.yaml": "x" * ((1 << 20) + 1)}, "1,048,576 are written"),
}


async def test_a_huge_input_is_refused_by_its_size(
    world: World, repository: GitRepository, platform: GitRepository
) -> None:
    platform.commit({path: text for files, _ in HUGE.values() for path, text in files.items()})
    steps = [
        with_inputs(
            repository,
            opening(platform.url),
            copying(source),
            environment=source.split(".")[0],
            path=f"environments/{DEV}",
        )
        for source in HUGE
    ]
    for said, (_, expected) in zip(await refused(world, *steps), HUGE.values(), strict=True):
        assert expected in said


async def test_an_input_is_never_written_to(world: World, repository: GitRepository, platform: GitRepository) -> None:
    """Names of steps do not choose what is pushed to."""
    step = promotion_step(repository, steps=[])
    step = with_inputs(
        repository, {**opening(platform.url), "as": "clone"}, copying(name="clone"), {"uses": "kustomize-set-image"}
    )
    before = platform.git("for-each-ref")
    await start_agent(world)
    await create(world, step)
    await reached(world, "HealthChecking")
    assert platform.git("for-each-ref") == before
    assert repository.promotions(DEV)
