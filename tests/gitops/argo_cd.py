"""Argo CD on a real API server: its application controller, its repo server, and the Redis between them.

It listens on sockets of the test's directory and on 127.0.0.1, but for the metrics of the application controller,
which has no setting for that. Argo CD looks at repositories more often than its default of three minutes, so that a
test sees it look by itself.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from hack.argocd.assets import ARGO_CD, redis_server
from hack.kube.assets import obtain
from hack.renderers.assets import find
from kardinal.objects import CONFIG_MAP, SECRET, JsonObject, ResourceType
from kardinal_agent.health.argocd_application import APPLICATION
from tests.gitops.cluster import Cluster, running_controller

__all__ = ["NAMESPACE", "RESYNC_SECONDS", "application", "running_argo_cd", "source"]

NAMESPACE = "argocd"
RESYNC_SECONDS = 10
"""How often Argo CD looks at a repository by itself."""

_PROJECT = ResourceType("argoproj.io", "v1alpha1", "AppProject", "appprojects")
_LABELS = {"app.kubernetes.io/part-of": "argocd"}
_LISTENING = re.compile(r"argocd-repo-server is listening on (127\.0\.0\.1:\d+)")
_START_SECONDS = 60.0
_LOOK_AGAIN = 0.05


def application(name: str, *sources: JsonObject, into: str | None = None, **policy: object) -> JsonObject:
    """Return an Application that applies sources to the namespace `into`, or `name`; `policy` is its `syncPolicy`."""
    return {
        "apiVersion": APPLICATION.api_version,
        "kind": APPLICATION.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "project": "default",
            **({"source": sources[0]} if len(sources) == 1 else {"sources": list(sources)}),
            "destination": {"server": "https://kubernetes.default.svc", "namespace": into or name},
            "syncPolicy": policy,
        },
    }


def source(url: str, path: str) -> JsonObject:
    """Return a source of an Application: a directory on branch `main`."""
    return {"repoURL": url, "path": path, "targetRevision": "main"}


@contextmanager
def running_argo_cd(cluster: Cluster, directory: Path, *, pipelines_from: str) -> Iterator[None]:
    """Run Argo CD on a control plane that serves its kinds; its output is in `directory`.

    Its namespace lets the Pipelines of the namespace `pipelines_from` in.
    """
    program = str(obtain(ARGO_CD) / "argocd")
    redis = directory / "redis.sock"
    cluster.namespace(NAMESPACE, **{"kardinal.io/pipelines-from": pipelines_from})
    for document in _settings():
        cluster.apply(*document)
    with ExitStack() as stack:

        def run(name: str, *arguments: str) -> Path:
            log = directory / f"{name}.log"
            environment = _environment(directory) | {"ARGOCD_BINARY_NAME": name}
            stack.enter_context(running_controller(cluster, [program, *arguments], log, **environment))
            return log

        command = [str(redis_server()), "--port", "0", "--unixsocket", str(redis), "--unixsocketperm", "700"]
        command += ["--save", "", "--appendonly", "no", "--dir", str(directory)]
        log = directory / "redis.log"
        stack.enter_context(running_controller(cluster, command, log))
        _wait(redis.exists, log)
        common = ("--redis", str(redis), "--logformat=text", "--loglevel=info")
        log = run(
            "argocd-repo-server",
            *common,
            "--address=127.0.0.1",
            "--port=0",
            "--metrics-address=127.0.0.1",
            "--metrics-port=0",
            "--disable-tls",
            f"--revision-cache-expiration={RESYNC_SECONDS}s",
        )
        _wait(lambda: _LISTENING.search(log.read_text()) is not None, log)
        (address,) = _LISTENING.findall(log.read_text())
        run(
            "argocd-application-controller",
            *common,
            f"--namespace={NAMESPACE}",
            f"--repo-server={address}",
            "--repo-server-plaintext",
            "--metrics-port=0",
            f"--app-resync={RESYNC_SECONDS}",
            "--app-resync-jitter=0",
        )
        yield


def _environment(directory: Path) -> dict[str, str]:
    """Return the settings that keep Argo CD in a directory; its cluster is the one of the kubeconfig."""
    temporary = directory / "temporary"
    programs = directory / "programs"
    kustomize = find("kustomize")
    for made in (temporary, programs):
        made.mkdir(exist_ok=True)
    if kustomize is not None and not (programs / "kustomize").exists():
        (programs / "kustomize").symlink_to(kustomize)
    return {
        "ARGOCD_ASK_PASS_SOCK": str(directory / "ask-pass.sock"),
        "ARGOCD_FAKE_IN_CLUSTER": "true",
        "ARGOCD_GPG_ENABLED": "false",
        "ARGOCD_PLUGINSOCKFILEPATH": str(temporary),
        "ARGOCD_SSH_DATA_PATH": str(temporary),
        "ARGOCD_TLS_DATA_PATH": str(temporary),
        "HOME": str(temporary),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "TMPDIR": str(temporary),
    }


def _settings() -> list[tuple[ResourceType, JsonObject]]:
    """Return what Argo CD reads from its namespace when it starts, and a project in which everything is allowed."""
    everything = [{"group": "*", "kind": "*"}]
    project = {
        "clusterResourceWhitelist": everything,
        "destinations": [{"server": "*", "namespace": "*"}],
        "sourceRepos": ["*"],
    }
    return [
        (CONFIG_MAP, {"metadata": {"name": "argocd-cm", "namespace": NAMESPACE, "labels": _LABELS}, "data": {}}),
        (SECRET, {"metadata": {"name": "argocd-secret", "namespace": NAMESPACE, "labels": _LABELS}, "data": {}}),
        (_PROJECT, {"metadata": {"name": "default", "namespace": NAMESPACE}, "spec": project}),
    ]


def _wait(ready: Callable[[], bool], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"it is not ready after {_START_SECONDS:g} s:\n{log.read_text()[-2000:]}")
        time.sleep(_LOOK_AGAIN)
