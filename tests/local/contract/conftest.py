"""One suite, three targets; see `tests.support.target`.

A case that takes the fixture `api` is recorded. When it has passed, what it heard is compared with the recording of the
real server: on the local plane that is the whole point, on a real server it tells that the recording is out of date.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from dataclasses import dataclass, replace
from pathlib import Path

import aiohttp
import pytest

from tests.local.contract.connection import Connection
from tests.local.contract.coverage import cell_of
from tests.local.contract.differences import difference_of_exchanges
from tests.local.contract.examples import config_map
from tests.local.contract.recordings import Recording
from tests.local.contract.scope import Scope
from tests.local.contract.tape import Tape
from tests.local.contract.wire import Api
from tests.support.kubectl import Kubectl
from tests.support.names import RUN
from tests.support.store import Etcd
from tests.support.target import Target

HISTORY_BYTES = 32 * 1024 * 1024
MEBIBYTE = 1024 * 1024


@dataclass(frozen=True)
class Cluster:
    """The server of one test."""

    kubeconfig: Path
    connection: Connection
    real: bool


@dataclass(frozen=True)
class Heard:
    """What a test was answered, and where its recording is."""

    api: Api
    scope: Scope
    version: str
    path: Path

    def verdict(self, item: pytest.Item) -> str:
        """What is wrong with the answers, or nothing."""
        exchanges = self.api.tape.scrubbed(self.scope.names | {self.api.server.removeprefix("https://"): "SERVER"})
        item.user_properties.append(("exchanges", len(exchanges)))
        if not exchanges:
            return ""
        if cell_of(item) is None:
            return "say what this case is about: @pytest.mark.covers(area, verb, outcome)"
        if item.config.getoption("record"):
            Recording(self.version, exchanges).store(self.path)
            return ""
        if not self.path.is_file():
            return f"there is no recording {self.path.name}: `make contract-record` stores what the real server answers"
        recorded = Recording.load(self.path).exchanges
        found = difference_of_exchanges(recorded, exchanges, time_passes=self.api.real)
        if self.api.real or item.get_closest_marker("differs") is None:
            return str(found or "")
        return "" if found else "the plane answers as the real server does: remove the row from the ledger"


_HEARD = pytest.StashKey[Heard]()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """Compare after the case itself has passed; when it has not, the comparison often tells why."""
    try:
        result = yield
    except Exception:
        if (heard := pyfuncitem.stash.get(_HEARD, None)) is not None:
            pyfuncitem.add_report_section("call", "contract", heard.verdict(pyfuncitem))
        raise
    if (heard := pyfuncitem.stash.get(_HEARD, None)) is not None and (wrong := heard.verdict(pyfuncitem)):
        pytest.fail(wrong, pytrace=False)
    return result


@pytest.fixture(scope="session")
def real_connection(request: pytest.FixtureRequest) -> Connection:
    return Connection.load(request.getfixturevalue("real_kubeconfig"))


@pytest.fixture
def cluster(request: pytest.FixtureRequest, target: Target) -> Cluster:
    """The API server that this test asks."""
    if target.real:
        connection = request.getfixturevalue("real_connection")
        return Cluster(request.getfixturevalue("real_kubeconfig"), connection, real=True)
    kubeconfig = request.getfixturevalue("plane").kubeconfig
    return Cluster(kubeconfig, Connection.load(kubeconfig), real=False)


@pytest.fixture
async def api(cluster: Cluster, target: Target, request: pytest.FixtureRequest) -> AsyncIterator[Api]:
    """Requests as the administrator, on tape."""
    scope = Scope(RUN, request.node.nodeid)
    async with aiohttp.ClientSession() as session:
        api = Api(session, cluster.connection, tape=Tape(), scope=scope, real=cluster.real)
        version = (await api.silent.get("/version")).body["gitVersion"]
        path = Recording.path(request.path.stem.removeprefix("test_"), request.node.name)
        request.node.stash[_HEARD] = Heard(api, scope, version, path)
        yield api
        if cluster.real:
            await scope.tidy(api.silent, namespaces=target is Target.KUBECONFIG)


@pytest.fixture
def forget(api: Api, cluster: Cluster) -> Callable[[], Awaitable[None]]:
    """Have the server forget what was before now, apart from what there is."""

    async def forgotten_by_compaction() -> None:
        store = cluster.kubeconfig.with_name("store-url")
        if not store.is_file():
            pytest.skip("only a server of our own can be told to forget")
        etcd = Etcd(store.read_text())
        etcd.forget()
        etcd.close()

    async def forgotten_by_writing() -> None:
        path = api.path("configmaps", "many-changes", namespace="default")
        for number in range(HISTORY_BYTES // (2 * MEBIBYTE) + 2):
            large = config_map("many-changes", text=f"{number:02}" + "x" * (MEBIBYTE - 64))
            assert (await api.silent.apply(path, large)).status < 300

    return forgotten_by_compaction if cluster.real else forgotten_by_writing


@pytest.fixture
async def run(kubectl: Callable[[Path], Kubectl], cluster: Cluster, api: Api) -> Kubectl:
    """kubectl as the administrator, in a namespace of this test alone."""
    namespace = api.namespace
    await api.silent.get("/version")
    return replace(kubectl(cluster.kubeconfig), namespace=namespace)


@pytest.fixture
async def widgets(api: Api, run: Kubectl) -> str:
    """The name by which kubectl knows the widgets of this test, which are served."""
    await api.silent.define(api.widgets())
    return f"widget.{api.group}"
