"""From a push to prod, on this machine: `examples/supply-chain/run.sh`.

It starts `kardinal local up --supply-chains --simulate`, a registry and the stand-ins, applies
`examples/supply-chain-standins`, and pushes four commits to the source: two good ones, one whose test fails, and one
that repairs it. For each it prints commit, Bundle, digest in prod and seconds, and checks with its own eyes: in the
repository that prod is deployed from, in the registry, and in the API server. It fails if anything is not as it says.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from hack.kube.assets import AssetsMissing
from hack.registry.server import RegistryFailed, running_registry
from hack.standins.images import Registry
from hack.standins.kinds import IMAGE, TEST_RUN
from hack.standins.running import running_standins
from kardinal.clock import SystemClock
from kardinal.git import create_bare_repository
from kardinal.kube import AlreadyExists, Client, load_connection
from kardinal.objects import NAMESPACE, SERVICE_ACCOUNT, JsonObject, ResourceType
from kardinal.objects.conditions import find_condition
from kardinal.promotion.kinds import BUNDLE, PIPELINE
from kardinal.runtime.process import run
from kardinal_supplychain.api.kinds import CLUSTER_RUN_TEMPLATE, CLUSTER_SUPPLY_CHAIN, TEMPLATES, WORKLOAD

__all__ = ["Road", "main"]

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "examples" / "supply-chain-standins"
TEAM = "my-team"
APP = "cart"
TURN_SECONDS = 60.0
START_SECONDS = 60.0
STOP_SECONDS = 40.0
_RBAC = "rbac.authorization.k8s.io"
_APPLIED = {
    (resource.api_version, resource.kind): resource
    for resource in (
        *TEMPLATES.values(),
        CLUSTER_RUN_TEMPLATE,
        CLUSTER_SUPPLY_CHAIN,
        WORKLOAD,
        PIPELINE,
        SERVICE_ACCOUNT,
        ResourceType(_RBAC, "v1", "Role", "roles"),
        ResourceType(_RBAC, "v1", "RoleBinding", "rolebindings"),
    )
}
_MAKEFILE = "test:\n\tgrep -q '^version' page.txt\n"


class RoadFailed(Exception):
    """Something is not as it should be."""


class Road:
    """The parts of one run: a source, a GitOps repository, a registry and an API server."""

    def __init__(self, directory: Path, registry: str, session: aiohttp.ClientSession) -> None:
        self.directory = directory
        self.repositories = directory / "git"
        self.image = f"{registry}/{TEAM}/{APP}"
        self._registry_host = registry
        self._registry = Registry(session)
        self._bundles: set[str] = set()

    def make_repositories(self) -> None:
        """Create the source, and the repository that the environments are deployed from."""
        clock = SystemClock()
        self.repositories.mkdir()
        create_bare_repository(self.repositories / "cart.git", {"README": b"The cart.\n"}, clock=clock)
        create_bare_repository(self.repositories / "gitops.git", _gitops(self.image), clock=clock)
        _git("clone", "--quiet", str(self.repositories / "cart.git"), str(self.directory / "work"))

    async def apply(self, client: Client) -> None:
        """Apply the example, with the places of this run instead of those that it names."""
        with suppress(AlreadyExists):
            await client.create(NAMESPACE, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
        for document in await asyncio.to_thread(self._manifests):
            resource = _APPLIED[document["apiVersion"], document["kind"]]
            await client.apply(resource, document, field_manager="run.sh", force=True)

    def _manifests(self) -> list[JsonObject]:
        found: list[JsonObject] = []
        for name in ("account", "templates", "supply-chain", "pipeline", "workload"):
            text = (MANIFESTS / f"{name}.yaml").read_text()
            text = text.replace("127.0.0.1:5000", self._registry_host).replace("/srv/git", str(self.repositories))
            found += yaml.safe_load_all(text)
        return found

    async def good_turn(self, client: Client, page: str) -> str:
        """Push a page, and wait until its image is verified in prod; returns the line of the turn."""
        began = time.monotonic()
        commit = await asyncio.to_thread(self._push, page)

        def is_verified(bundle: JsonObject) -> bool:
            ready = find_condition(bundle.get("status") or {}, "Ready") or {}
            return bundle["metadata"].get("name") not in (None, *self._bundles) and ready.get("status") == "True"

        bundle = await _until(client, BUNDLE, is_verified, f"a Bundle of {commit[:7]} that is Verified")
        seconds = time.monotonic() - began
        self._bundles.add(bundle["metadata"]["name"])
        digest = await asyncio.to_thread(self._digest_in_prod)
        (image,) = bundle["spec"]["artifacts"]["images"]
        _check(
            image["reference"] == f"{self.image}@{digest}", f"prod has {digest}, and the Bundle {image['reference']}"
        )
        content = await self._registry.read_file(f"{self.image}@{digest}", "workspace/page.txt")
        _check(content == page.encode(), f"the image in prod has {content!r}, and {page!r} was pushed")
        return _row(commit, bundle["metadata"]["name"], digest, seconds)

    async def failing_turn(self, client: Client, page: str) -> str:
        """Push a page whose test fails, and wait until the Workload says so; returns the line of the turn."""
        began = time.monotonic()
        before = await self._registry.digest(self.image)
        commit = await asyncio.to_thread(self._push, page)

        def has_failed(test: JsonObject) -> bool:
            succeeded = find_condition(test.get("status") or {}, "Succeeded") or {}
            revision: str = test.get("spec", {}).get("source", {}).get("revision", "")
            return revision.endswith(commit) and succeeded.get("status") == "False"

        await _until(client, TEST_RUN, has_failed, f"a failed test of {commit[:7]}")
        await _until(client, WORKLOAD, _has_failed_test, "a Workload whose resource `test` is unhealthy")
        await self.check_bundles(client)
        digest = await asyncio.to_thread(self._digest_in_prod)
        _check(digest == before == await self._registry.digest(self.image), "the failed test was followed by an image")
        return _row(commit, "none: its test fails", digest, time.monotonic() - began)

    async def check_bundles(self, client: Client) -> None:
        """Raise `RoadFailed` if there are Bundles beside those of the good turns."""
        found = {bundle["metadata"]["name"] for bundle in (await client.list(BUNDLE, TEAM)).items}
        _check(found == self._bundles, f"there are Bundles {sorted(found)}, and {sorted(self._bundles)} were expected")

    async def check_builds(self, client: Client, builds: int) -> None:
        """Raise `RoadFailed` if another number of images was built."""
        counter = (await client.get(IMAGE, APP, TEAM))["status"]["buildCounter"]
        _check(counter == builds, f"{counter} images were built, and {builds} were expected")

    def _push(self, page: str) -> str:
        work = self.directory / "work"
        (work / "page.txt").write_text(page)
        (work / "Makefile").write_text(_MAKEFILE)
        _git("add", ".", at=work)
        _git("commit", "--quiet", f"--message={page.strip()}", at=work)
        _git("push", "--quiet", "origin", "HEAD:main", at=work)
        return _git("rev-parse", "HEAD", at=work)

    def _digest_in_prod(self) -> str:
        """Return the digest that the kustomization of prod has on the main branch."""
        path = "main:environments/prod/kustomization.yaml"
        document = yaml.safe_load(_git("show", path, at=self.repositories / "gitops.git"))
        return next(str(image.get("digest", "")) for image in document["images"] if image["name"] == self.image)


def _has_failed_test(workload: JsonObject) -> bool:
    resources = (workload.get("status") or {}).get("resources") or ()
    healthy = [find_condition(each, "Healthy") or {} for each in resources if each["name"] == "test"]
    return any(condition.get("status") == "False" for condition in healthy)


def _check(holds: bool, problem: str) -> None:
    if not holds:
        raise RoadFailed(problem)


def _row(commit: str, bundle: str, digest: str, seconds: float) -> str:
    return f"{commit[:10]:<12}{bundle:<24}{digest[:23]:<26}{seconds:5.1f}"


async def _until(client: Client, kind: ResourceType, is_there: Callable[[JsonObject], bool], wanted: str) -> JsonObject:
    """Return the first object in the namespace of the team that is as wanted. Raises `RoadFailed`."""
    try:
        async with asyncio.timeout(TURN_SECONDS):
            while True:
                async with client.watch(kind, TEAM, initial_events=True) as events:
                    async for event in events:
                        if is_there(event.object):
                            return event.object
    except TimeoutError:
        raise RoadFailed(f"after {TURN_SECONDS:.0f} s there is not {wanted}") from None


def _gitops(image: str) -> dict[str, bytes]:
    """Return the files of a repository with two environments that run an image."""
    labels = {"app": APP}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": APP, "image": image}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": APP},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod},
    }
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    overlays: dict[str, Any] = {
        f"environments/{name}/kustomization.yaml": {
            **head,
            "namespace": name,
            "resources": ["../../base"],
            "images": [{"name": image, "newTag": "none-yet"}],
        }
        for name in ("dev", "prod")
    }
    files = {"base/deployment.yaml": deployment, "base/kustomization.yaml": {**head, "resources": ["deployment.yaml"]}}
    return {path: yaml.safe_dump(content, sort_keys=False).encode() for path, content in (files | overlays).items()}


def _git(*arguments: str, at: Path | None = None) -> str:
    identity = ("-c", "user.name=run.sh", "-c", "user.email=run.sh@example.org")
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=at, capture_output=True, text=True, timeout=30, check=False
    )
    _check(done.returncode == 0, f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


@contextmanager
def _plane(directory: Path) -> Iterator[Path]:
    """Run `kardinal local up` until the end of the block; yields its kubeconfig once it is ready."""
    kardinal = Path(sys.executable).with_name("kardinal")
    command = [str(kardinal), "local", "up", "--supply-chains", "--simulate", "--dir", str(directory), "--port", "0"]
    log = directory.with_suffix(".log")
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            for line in process.stdout or ():
                if line.startswith("ready"):
                    break
            else:
                raise RoadFailed(f"kardinal local up has ended: {log.read_text(errors='replace')[-2000:]}")
            yield directory / "kubeconfig"
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


@asynccontextmanager
async def _road(directory: Path) -> AsyncIterator[tuple[Road, Client]]:
    """Start all parts, and stop them at the end of the block."""
    async with AsyncExitStack() as stack:
        registry = await asyncio.to_thread(stack.enter_context, running_registry())
        session = await stack.enter_async_context(aiohttp.ClientSession())
        road = Road(directory, f"127.0.0.1:{registry.port}", session)
        await asyncio.to_thread(road.make_repositories)
        kubeconfig = await asyncio.to_thread(stack.enter_context, _plane(directory / "plane"))
        connection = await load_connection(kubeconfig)
        client = await stack.enter_async_context(Client(connection, user_agent="run.sh"))
        await road.apply(client)
        standins = running_standins(
            client, kubeconfig=kubeconfig, namespace=TEAM, directory=directory, repositories=road.repositories
        )
        await stack.enter_async_context(standins)
        yield road, client


async def drive(directory: Path) -> None:
    """Push four commits, and print the line of each."""
    began = time.monotonic()
    print("source, tests and builds: STAND-INS of hack/standins; nodes and GitOps tool: the simulator", flush=True)
    async with _road(directory) as (road, client):
        print(f"everything runs after {time.monotonic() - began:.1f} s\n", flush=True)
        print(f"{'commit':<12}{'Bundle':<24}{'digest in prod':<26}{'s':>5}", flush=True)
        print(await road.good_turn(client, "version 1\n"), flush=True)
        print(await road.good_turn(client, "version 2\n"), flush=True)
        print(await road.failing_turn(client, "broken\n"), flush=True)
        print(await road.good_turn(client, "version 3\n"), flush=True)
        await road.check_bundles(client)
        await road.check_builds(client, 3)
    print(
        "\nEach image in prod, pulled by its digest, has the page that was pushed; the failing test made no image and "
        f"no Bundle. {time.monotonic() - began:.0f} s in all."
    )


def main() -> int:
    """Run the road in a temporary directory."""
    # As Ctrl-C, so that all that was started ends.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with tempfile.TemporaryDirectory(prefix="kardinal-road-") as name:
        try:
            run(drive(Path(name)))
        except (RoadFailed, RegistryFailed, AssetsMissing) as error:
            print(f"run.sh: {error}", file=sys.stderr)
            return 1
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
