"""A Secret that the agent's rights do not reach, against a server that says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web

from kardinal.git import GitRunner, Repositories
from kardinal.git.secret_hosts import host_allowed, refused_host
from kardinal.git.shares import Shares
from kardinal.kube import Client, ClusterAccess, Connection
from kardinal.promotion.api import PromotionStep
from kardinal.scm.http import HostSessions
from kardinal_agent.errors import classified
from kardinal_agent.remotes import RemoteRules, Remotes
from kardinal_agent.secret_memory import KeptSecrets, SecretVersions
from tests.agent.promotion_steps import promotion_step
from tests.support.clock import VirtualClock
from tests.support.names import TEAM
from tests.support.registry import EXTENSIONS


@pytest.fixture
async def own_cluster() -> AsyncIterator[Client]:
    """Yield a client of a cluster that forbids everything."""

    async def forbid(request: web.Request) -> web.Response:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden"}
        return web.json_response({**status, "message": f"may not {request.path}"}, status=403)

    application = web.Application()
    application.router.add_route("*", "/{tail:.*}", forbid)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    async with Client(Connection(ClusterAccess(f"http://{host}:{port}")), user_agent="test") as client:
        yield client
    await runner.cleanup()


async def test_a_secret_out_of_reach_names_the_role_to_add_and_is_tried_again(
    own_cluster: Client, tmp_path: Path, clock: VirtualClock
) -> None:
    runner = GitRunner(workers=1)
    remotes = Remotes(
        Repositories(tmp_path, runner=runner, clock=clock, allow_local=False),
        secrets=own_cluster,
        clock=clock,
        on_request=lambda endpoint, status: None,
        rules=RemoteRules(namespaces={TEAM: "teams-here"}),
        shares=Shares(4),
        providers=EXTENSIONS.providers,
        sessions=HostSessions(clock=clock),
        versions=SecretVersions(),
        kept=KeptSecrets(lambda namespace: None),
    )
    made = promotion_step("https://git.example.com/acme/gitops", provider="git")
    made["spec"]["git"]["secretRef"] = {"name": "git"}
    with pytest.raises(Exception, match="Secret teams-here/git may not be read") as caught:
        await remotes.open(PromotionStep.model_validate(made))
    runner.close()
    failure = classified(caught.value)
    assert failure.transient
    assert "deploy/agent/secrets/namespace.yaml" in failure.message
    assert "namespace teams-here, with git among the names of its Role" in failure.message


@pytest.mark.parametrize(
    ("host", "pattern", "allowed"),
    [
        ("git.example.com", "git.example.com", True),
        ("git.example.com", "*.example.com", True),
        ("git.example.com", "git.example.com:443", True),
        ("git.example.com:8443", "git.example.com", False),
        ("git.example.com:8443", "*.example.com:*", True),
        ("git.example.com", "example.com", False),
        ("notexample.com", "*.example.com", False),
        ("git.example.com.evil.org", "git.example.com*", True),
        ("[::1]:8443", "[::1]:8443", True),
        ("[::1]", "[::1]", True),
        ("anything:1", "*", True),
    ],
)
def test_a_pattern_without_a_port_means_that_of_https(host: str, pattern: str, allowed: bool) -> None:
    assert host_allowed(host, ("other.example.org", pattern)) is allowed


@pytest.mark.parametrize(
    ("hosts", "host", "kept"),
    [
        (" Git.Example.com:443 ,", "git.example.com", None),
        ("git.example.com", "git.example.com:8443", "git.example.com,git.example.com:8443"),
        ("*.example.com", "git.example.com", "git.example.com"),
        ("$(reboot)", "git.example.com", "git.example.com"),
        ("x" * 400, "git.example.com", "git.example.com"),
    ],
)
def test_a_host_is_named_exactly_or_the_command_adds_it(hosts: str, host: str, kept: str | None) -> None:
    metadata = {
        "name": "git",
        "namespace": "team",
        "labels": {"kardinal.io/credentials": "git"},
        "annotations": {"kardinal.io/hosts": hosts},
    }
    refusal = refused_host({"metadata": metadata}, host)
    assert bool(refusal) is (kept is not None)
    if kept:
        assert refusal.endswith(f"kardinal.io/hosts={kept}\n")
