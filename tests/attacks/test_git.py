"""Attacks of a tenant through Git: on Secrets that are not for a host, and on the work of other namespaces."""

from __future__ import annotations

import base64
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kardinal.kube import PatchType
from kardinal.objects import SECRET, JsonObject
from kardinal.objects.secret_purposes import ANNOTATION_HOSTS, CREDENTIALS_GIT, CREDENTIALS_SIGNING, LABEL_CREDENTIALS
from kardinal.promotion.api import Pipeline, names
from kardinal.promotion.kinds import PIPELINE, PROMOTION_STEP
from kardinal.promotion.translation.repository import Features
from kardinal.promotion.translation.translate import validate
from tests.support.names import DEV, TEAM, of_run
from tests.support.objects import bundle, namespace, pipeline
from tests.support.programs import start_agent, start_controller
from tests.support.registry import REGISTRY
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
    label: str | None = CREDENTIALS_GIT,
    namespace: str = TEAM,
    **data: str,
) -> JsonObject:
    """Return a Secret; by default with the password of the server."""
    values = data or {"username": USER, "password": PASSWORD}
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if label is not None:
        metadata["labels"] = {LABEL_CREDENTIALS: label}
    if hosts is not None:
        metadata["annotations"] = {ANNOTATION_HOSTS: hosts}
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


async def test_a_secret_that_is_not_for_the_host_is_sent_nowhere(world: World, server: SmartServer) -> None:
    """Name one that is not for Git, one for another host, and one for another port or protocol of the host."""
    url = f"{server.url}/gitops.git"
    of_the_webhook = secret("kardinal-webhook", label=None, token="webhook-token")
    attacks: dict[str, tuple[str, JsonObject, str]] = {
        "elsewhere": (url, secret("elsewhere", hosts="git.example.com"), f"git.example.com,{host(server)}"),
        "every-port": (url, secret("every-port", hosts="127.0.0.1"), f"127.0.0.1,{host(server)}"),
        "ssh": ("ssh://git@127.0.0.1/acme/gitops", secret("ssh", hosts="127.0.0.1"), "127.0.0.1,127.0.0.1:22"),
        "http": ("http://127.0.0.1/acme/gitops", secret("http", hosts="127.0.0.1"), "127.0.0.1,127.0.0.1:80"),
        "webhook": (url, of_the_webhook, host(server)),
    }
    await start_controller(world, allow_local_repositories=False)
    for name, (repository, credentials, _) in attacks.items():
        way = remote_pipeline(repository, uses=credentials["metadata"]["name"], name=name)
        await world.apply(credentials, way, bundle(f"{name}-1", pipeline=name))
    messages = {name: await failed(world, f"{name}-1") for name in attacks}
    for name, (_, _, hosts) in attacks.items():
        assert f"kardinal.io/hosts={hosts}" in messages[name]
    message = messages["webhook"]
    assert f"kubectl -n {TEAM} label secret kardinal-webhook kardinal.io/credentials=git" in message
    assert f"kubectl -n {TEAM} annotate --overwrite secret kardinal-webhook kardinal.io/hosts={host(server)}" in message
    assert "webhook-token" not in message
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
def test_a_host_has_one_spelling_for_every_reader(url: str) -> None:
    """Refuse a host that ends elsewhere for some readers, and letters that resolvers take for others."""
    message = problems(pipeline(url, provider="git", environments=[DEV]))
    assert "git.url" in message
    assert "is not a repository URL" in message


def problems(way: JsonObject) -> str:
    """Return why a Pipeline is not translatable; nothing of it is promoted."""
    return "; ".join(map(str, validate(Pipeline.model_validate(way), features=Features(registry=REGISTRY))))


def ready(obj: JsonObject) -> str | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((condition["status"] for condition in conditions if condition["type"] == "Ready"), None)


async def test_a_host_outside_the_permitted_ones_is_not_contacted(world: World, server: SmartServer) -> None:
    await start_controller(world, allow_git_hosts=("127.0.0.1", "git.example.com", "*.0.0.1:443"))
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


async def test_http_to_another_machine_needs_the_word_of_the_operator(world: World) -> None:
    await start_controller(world, allow_insecure_git=("git.example.org:3000",))
    await world.apply(pipeline("http://git.example.org/acme/gitops", provider="git", environments=[DEV]))
    found = await world.wait_for(PIPELINE, "my-app", lambda found: ready(found) == "False")
    assert "--allow-insecure-git git.example.org" in str(found["status"])
    allowed = pipeline("http://git.example.org:3000/acme/gitops", provider="git", environments=[DEV], name="other")
    await world.apply(allowed)
    await world.wait_for(PIPELINE, "other", lambda found: ready(found) == "True")


def test_a_repository_by_ssh_names_its_secret() -> None:
    message = problems(pipeline("git@git.example.org:acme/gitops.git", provider="git", environments=[DEV]))
    assert "spec.git.secretRef" in message
    assert "known_hosts" in message


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


def test_an_unknown_placeholder_is_refused_before_any_bundle() -> None:
    made = pipeline("https://git.example.org/acme/gitops", provider="git", environments=[DEV])
    made["spec"]["git"]["message"] = {"subject": "${bundle.verison}"}
    message = problems(made)
    assert "spec.git.message.subject" in message
    assert "${bundle.version}" in message


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
    signing = secret("signing", label=CREDENTIALS_SIGNING, **{"ssh-privatekey": key.private})
    await world.apply(signing, made, bundle(BUNDLE))
    await world.until(lambda: repository.promotions(DEV))
    shown = repository.git("log", "-1", "--format=%G? %GS|%ae|%ce|%s", "main").strip()
    assert shown == "G robot@example.org|dana@example.org|robot@example.org|deploy 1.1.0"
    repository.git("verify-commit", "main")
