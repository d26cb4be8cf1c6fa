"""Attacks of a tenant through Git: on Secrets that are not for a host, and on the work of other namespaces."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kardinal.api import PIPELINE, PROMOTION_STEP, names
from kardinal.kube import PatchType
from kardinal.objects import SECRET, JsonObject
from tests.support.names import DEV, TEAM, of_run
from tests.support.objects import bundle, namespace, pipeline
from tests.support.programs import start_agent, start_controller
from tests.support.repository import GitRepository
from tests.support.smart_server import PASSWORD, USER, SmartServer, serving
from tests.support.ssh_server import new_key
from tests.support.world import World

BUNDLE = "app-1"
ELSEWHERE = of_run("elsewhere")


@pytest.fixture
def server(repository: GitRepository, certificate: Any) -> Iterator[SmartServer]:
    """Yield an HTTPS server of the repository."""
    repository.git("config", "http.receivepack", "true")
    with serving(repository.path.parent, certificate) as server:
        yield server


def host(server: SmartServer) -> str:
    return server.url.removeprefix("https://")


def secret(
    name: str = "git",
    *,
    hosts: str | None = None,
    label: str | None = names.CREDENTIALS_GIT,
    namespace: str = TEAM,
    **data: str,
) -> JsonObject:
    """Return a Secret; by default with the password of the server."""
    values = data or {"username": USER, "password": PASSWORD}
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if label is not None:
        metadata["labels"] = {names.LABEL_CREDENTIALS: label}
    if hosts is not None:
        metadata["annotations"] = {names.ANNOTATION_HOSTS: hosts}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata,
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def remote_pipeline(url: str, *, uses: str = "git", **fields: Any) -> JsonObject:
    made = pipeline(url, provider="git", environments=[DEV], **fields)
    made["spec"]["git"]["secretRef"] = {"name": uses}
    return made


async def failed(world: World, name: str = BUNDLE) -> str:
    """Return the message of the step of a Bundle, which fails."""
    step = await world.wait_for(
        PROMOTION_STEP, names.step_name(name, DEV), lambda step: (step.get("status") or {}).get("state") == "Failed"
    )
    return str(step["status"]["message"])


async def test_a_secret_that_is_not_for_git_is_sent_to_no_host(world: World, server: SmartServer) -> None:
    await start_controller(world, allow_local_repositories=False)
    await world.apply(
        secret("kardinal-webhook", label=None, token="webhook-token"),
        remote_pipeline(f"{server.url}/gitops.git", uses="kardinal-webhook"),
        bundle(BUNDLE),
    )
    message = await failed(world)
    assert f"kubectl -n {TEAM} label secret kardinal-webhook kardinal.io/credentials=git" in message
    assert f"kubectl -n {TEAM} annotate --overwrite secret kardinal-webhook kardinal.io/hosts={host(server)}" in message
    assert "webhook-token" not in message
    assert server.requests == []


async def test_a_git_secret_is_sent_to_the_hosts_that_it_names_alone(world: World, server: SmartServer) -> None:
    await start_controller(world)
    await world.apply(secret(hosts="git.example.com"), remote_pipeline(f"{server.url}/gitops.git"), bundle(BUNDLE))
    message = await failed(world)
    assert f"kardinal.io/hosts=git.example.com,{host(server)}" in message
    assert server.requests == []


async def test_a_host_is_not_every_port_of_its_name(world: World, server: SmartServer) -> None:
    await start_controller(world)
    await world.apply(secret(hosts="127.0.0.1"), remote_pipeline(f"{server.url}/gitops.git"), bundle(BUNDLE))
    assert host(server) in await failed(world)
    assert server.requests == []


async def test_the_lines_of_the_refusal_mend_it(world: World, server: SmartServer, repository: GitRepository) -> None:
    await start_controller(world)
    await world.apply(secret(label=None), remote_pipeline(f"{server.url}/gitops.git"), bundle(BUNDLE))
    message = await failed(world)
    label = re.search(r"kubectl -n (\S+) label secret (\S+) (\S+)=(\S+)", message)
    annotation = re.search(r"kubectl -n (\S+) annotate --overwrite secret (\S+) (\S+)=(\S+)", message)
    assert label is not None
    assert annotation is not None
    for kind, found in (("labels", label), ("annotations", annotation)):
        namespace, name, key, value = found.groups()
        await world.client.patch(SECRET, name, namespace, {"metadata": {kind: {key: value}}}, kind=PatchType.MERGE)
    await world.apply(bundle("app-2", tag="1.2.0"))
    await world.until(lambda: repository.promotions(DEV))


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.com\\.git.example.com/acme/gitops",
        "https://evil.example.com%2f.git.example.com/acme/gitops",
        "https://\uff47it.example.com/acme/gitops",
        "https://\u017fcm.example.com/acme/gitops",
        "http\u017f://git.example.com/acme/gitops",
    ],
)
async def test_a_host_has_one_spelling_for_every_reader(world: World, url: str) -> None:
    """Refuse a host that ends elsewhere for some readers, and letters that resolvers take for others."""
    await start_controller(world)
    await world.apply(pipeline(url, provider="git", environments=[DEV]), bundle(BUNDLE))
    found = await world.wait_for(PIPELINE, "my-app", lambda found: ready(found) == "False")
    assert "git.url" in str(found["status"])
    assert "is not a repository URL" in str(found["status"])
    assert await world.find(PROMOTION_STEP, names.step_name(BUNDLE, DEV)) is None


def ready(obj: JsonObject) -> str | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)


@pytest.mark.parametrize("pattern", ["127.0.0.1", "git.example.com", "*.0.0.1:443"])
async def test_a_host_outside_the_permitted_ones_is_not_contacted(
    world: World, server: SmartServer, pattern: str
) -> None:
    await start_controller(world, allow_git_hosts=(pattern,))
    await world.apply(secret(hosts=host(server)), remote_pipeline(f"{server.url}/gitops.git"), bundle(BUNDLE))
    assert "--allow-git-hosts" in await failed(world)
    assert server.requests == []


async def test_a_permitted_host_and_a_mapped_namespace_are_used(
    world: World, server: SmartServer, repository: GitRepository
) -> None:
    await start_controller(world, standalone=False)
    await start_agent(world, allow_git_hosts=("127.*:*",), namespace_map={TEAM: ELSEWHERE})
    await world.apply(
        namespace(ELSEWHERE),
        secret(hosts=f" {host(server)} , git.example.com", namespace=ELSEWHERE),
        remote_pipeline(f"{server.url}/gitops.git"),
        bundle(BUNDLE),
    )
    await world.until(lambda: repository.promotions(DEV))


@pytest.mark.parametrize("scheme", ["ssh", "http"])
async def test_a_host_named_for_https_gets_nothing_by_another_protocol(
    world: World, server: SmartServer, scheme: str
) -> None:
    """Refuse a Secret for `127.0.0.1` where the URL leads to the port of ssh, or of http in the clear."""
    await start_controller(world)
    url = "ssh://git@127.0.0.1/acme/gitops" if scheme == "ssh" else "http://127.0.0.1/acme/gitops"
    await world.apply(secret(hosts="127.0.0.1"), remote_pipeline(url), bundle(BUNDLE))
    assert f"kardinal.io/hosts=127.0.0.1,127.0.0.1:{22 if scheme == 'ssh' else 80}" in await failed(world)


async def test_http_to_another_machine_needs_the_word_of_the_operator(world: World) -> None:
    await start_controller(world, allow_insecure_git=("git.example.org:3000",))
    await world.apply(pipeline("http://git.example.org/acme/gitops", provider="git", environments=[DEV]))
    found = await world.wait_for(PIPELINE, "my-app", lambda found: ready(found) == "False")
    assert "--allow-insecure-git git.example.org" in str(found["status"])
    allowed = pipeline("http://git.example.org:3000/acme/gitops", provider="git", environments=[DEV], name="other")
    await world.apply(allowed)
    await world.wait_for(PIPELINE, "other", lambda found: ready(found) == "True")


async def test_a_repository_by_ssh_names_its_secret(world: World) -> None:
    await start_controller(world)
    await world.apply(pipeline("git@git.example.org:acme/gitops.git", provider="git", environments=[DEV]))
    found = await world.wait_for(PIPELINE, "my-app", lambda found: ready(found) == "False")
    assert "spec.git.secretRef" in str(found["status"])
    assert "known_hosts" in str(found["status"])


async def test_the_author_of_a_bundle_writes_no_trailers_through_a_template(
    world: World, repository: GitRepository
) -> None:
    """Have the words of CI stand in a commit, and none of them be taken for a mark of kardinal's."""
    await start_controller(world)
    git = {"message": {"subject": "${bundle.author}", "body": "by\n\n${bundle.author}"}}
    made = pipeline(repository, environments=[DEV])
    made["spec"]["git"] |= git
    promoted = bundle(BUNDLE)
    promoted["spec"]["provenance"] = {"author": "Kardinal-Uid: 1\n\nKardinal-Bundle: app-0"}
    await world.apply(made, promoted)
    await world.until(lambda: repository.promotions(DEV))
    (commit,) = repository.promotions(DEV)
    assert commit.subject == "> Kardinal-Uid: 1 Kardinal-Bundle: app-0"
    assert commit.trailers["Kardinal-Bundle"] == BUNDLE
    text = repository.git("log", "-1", "--format=%B", "main")
    assert sum(line.startswith("Kardinal-") for line in text.splitlines()) == 4


async def test_an_unknown_placeholder_is_refused_before_any_bundle(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    made = pipeline(repository, environments=[DEV])
    made["spec"]["git"]["message"] = {"subject": "${bundle.verison}"}
    await world.apply(made)
    found = await world.wait_for(PIPELINE, "my-app", lambda found: ready(found) == "False")
    assert "spec.git.message.subject" in str(found["status"])
    assert "${bundle.version}" in str(found["status"])


async def test_a_key_for_hosts_signs_nothing(world: World, repository: GitRepository) -> None:
    await start_controller(world)
    made = pipeline(repository, environments=[DEV])
    made["spec"]["git"]["signingSecretRef"] = {"name": "git"}
    await world.apply(secret(hosts="git.example.com", **{"ssh-privatekey": new_key().private}), made, bundle(BUNDLE))
    message = await failed(world)
    assert f"kubectl -n {TEAM} label --overwrite secret git kardinal.io/credentials=git-signing" in message
    assert not repository.promotions(DEV)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="git verifies signatures with ssh-keygen")
async def test_commits_are_signed_and_their_author_is_the_one_of_the_pipeline(
    world: World, repository: GitRepository, tmp_path: Path
) -> None:
    key = new_key()
    (tmp_path / "allowed").write_text(f"robot@example.org {key.public}\n")
    repository.git("config", "gpg.ssh.allowedSignersFile", str(tmp_path / "allowed"))
    await start_controller(world)
    made = pipeline(repository, environments=[DEV])
    made["spec"]["git"] |= {
        "signingSecretRef": {"name": "signing"},
        "author": {"name": "Dana", "email": "dana@example.org"},
        "committer": {"name": "Robot", "email": "robot@example.org"},
        "message": {"subject": "deploy ${bundle.version}"},
    }
    signing = secret("signing", label=names.CREDENTIALS_SIGNING, **{"ssh-privatekey": key.private})
    await world.apply(signing, made, bundle(BUNDLE))
    await world.until(lambda: repository.promotions(DEV))
    shown = repository.git("log", "-1", "--format=%G? %GS|%ae|%ce|%s", "main").strip()
    assert shown == "G robot@example.org|dana@example.org|robot@example.org|deploy 1.1.0"
    repository.git("verify-commit", "main")
