"""A real Prometheus: values, several series, no data, and every way in which it does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kardinal.clock import SystemClock
from kardinal.promotion.api.metric_check import MetricCheckSpec
from kardinal.promotion.kinds import METRIC_CHECK, POLICY_GATE
from kardinal.promotion.metrics.outcomes import MetricOutcome, measured
from kardinal.promotion.metrics.provider import MetricError, MetricQuery
from tests.bundles.reading import REPOSITORY
from tests.metrics.asking import asking, at, metric_secret
from tests.metrics.prometheus import PASSWORD, PROMETHEUS, USER, RunningPrometheus, running_prometheus
from tests.metrics.serving import HERE, check
from tests.support.names import DEV, TEAM
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller
from tests.support.smart_server import self_signed
from tests.support.world import World

pytestmark = pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not on PATH: Debian's package has it")

RATE = (
    'sum(rate(shop_requests_total{app="my-app",code!~"5.."}[10s])) / sum(rate(shop_requests_total{app="my-app"}[10s]))'
)
NOTHING = 'sum(rate(shop_idle{app="other"}[10s]))'
IDLE = "shop_idle / shop_idle"


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningPrometheus]:
    with running_prometheus(tmp_path_factory.mktemp("prometheus")) as running:
        yield running


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[RunningPrometheus]:
    """Yield a Prometheus with TLS that wants a login."""
    with running_prometheus(tmp_path_factory.mktemp("guarded"), certificate=certificate) as running:
        yield running


async def ask(world: World, address: str, query: str, *, secret: bool = False, **fields: Any) -> MetricOutcome:
    """Return the outcome of a check with this query. Raises `MetricError`."""
    server = at(address, secret=secret)
    conditions = {"successCondition": ">= 0.9", "failureCondition": "< 0.5"}
    values = {"provider": server.to_json(), "query": query, **conditions, "timeout": "2s", **fields}
    spec = MetricCheckSpec.model_validate(values)
    now = SystemClock().now()
    range_ = spec.range
    asked = MetricQuery(
        text=query,
        at=now,
        timeout=spec.timeout,
        length=range_.duration if range_ else None,
        step=range_.step if range_ else None,
    )
    return measured(spec, await asking(world, HERE).query(server, TEAM, asked), now=now)


@pytest.mark.parametrize(
    ("query", "fields", "expected"),
    [
        (RATE, {}, ("Success", 0.98)),
        ("shop_idle", {}, ("Failure", 0)),
        ('shop_queue{queue="c"}', {}, ("Success", 6)),
        ("0.7", {}, ("Unknown", 0.7)),
        ("shop_queue", {"reduce": "min"}, ("Success", 1)),
        ("shop_queue", {"reduce": "max"}, ("Success", 6)),
        ("shop_queue", {"reduce": "avg"}, ("Success", 3)),
        ("shop_queue", {"reduce": "sum"}, ("Success", 9)),
        ("max(shop_queue)", {"reduce": "max", "range": {"duration": "2s", "step": "1s"}}, ("Success", 6)),
        ("shop_queue[2s]", {"reduce": "avg"}, ("Success", 3)),
        (NOTHING, {}, ("NoData", None)),
        (NOTHING, {"noDataBehavior": "fail"}, ("Failure", None)),
        (NOTHING, {"noDataBehavior": "pass"}, ("Success", None)),
        (IDLE, {}, ("NoData", None)),
        ("1 / shop_idle", {}, ("Success", None)),
        ("shop_queue", {}, ("Error", None)),
        ("shop_queue[2s]", {}, ("Error", None)),
    ],
)
async def test_answer(
    world: World,
    prometheus: RunningPrometheus,
    query: str,
    fields: dict[str, Any],
    expected: tuple[str, float | None],
) -> None:
    found = await ask(world, prometheus.address, query, **fields)
    status, value = expected
    assert (found.status, found.value) == (status, pytest.approx(value) if value is not None else None)


@pytest.mark.parametrize(
    ("query", "fields", "says"),
    [
        ("sum(rate(", {}, "the query fails (bad_data): "),
        ("shop_queue * on() shop_queue", {}, "the query fails (execution): "),
        ('"text"', {}, "gives a string"),
        ("shop_idle", {"reduce": "max", "range": {"duration": "1h", "step": "10ms"}}, "exceeded maximum resolution"),
    ],
)
async def test_query_that_cannot_be_answered(
    world: World, prometheus: RunningPrometheus, query: str, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(MetricError) as caught:
        await ask(world, prometheus.address, query, **fields)
    assert says in str(caught.value)


async def test_server_that_is_down(world: World, tmp_path: Path) -> None:
    with running_prometheus(tmp_path) as running:
        address = running.address
    with pytest.raises(MetricError, match="cannot be reached"):
        await ask(world, address, "up")


async def test_server_that_is_slow(world: World, prometheus: RunningPrometheus) -> None:
    with prometheus.stopped(), pytest.raises(MetricError, match="within 1 s"):
        await ask(world, prometheus.address, "up", timeout="1s")
    assert (await ask(world, prometheus.address, "up")).value == 1


async def test_certificate_that_is_not_trusted(world: World, guarded: RunningPrometheus, tmp_path: Path) -> None:
    with pytest.raises(MetricError, match="certificate that is not trusted"):
        await ask(world, guarded.address, "up")
    other = self_signed(tmp_path).read_text()
    await world.apply(metric_secret(guarded.host, **{"ca.crt": _public(other)}))
    with pytest.raises(MetricError, match="certificate that is not trusted"):
        await ask(world, guarded.address, "up", secret=True)


async def test_login_that_is_missing_or_wrong(world: World, guarded: RunningPrometheus, certificate: Path) -> None:
    trusted = {"ca.crt": _public(certificate.read_text())}
    await world.apply(metric_secret(guarded.host, **trusted))
    with pytest.raises(MetricError, match="answers 401: correct the credentials"):
        await ask(world, guarded.address, "1", secret=True)
    await world.apply(metric_secret(guarded.host, username=USER, password="wrong pass", **trusted))
    with pytest.raises(MetricError, match="answers 401"):
        await ask(world, guarded.address, "1", secret=True)


async def test_login_over_a_trusted_connection(world: World, guarded: RunningPrometheus, certificate: Path) -> None:
    secret = {"ca.crt": _public(certificate.read_text()), "username": USER, "password": PASSWORD}
    await world.apply(metric_secret(guarded.host, **secret))
    assert (await ask(world, guarded.address, "1", secret=True)).value == 1


async def test_plain_http_to_a_server_with_tls(world: World, guarded: RunningPrometheus) -> None:
    with pytest.raises(MetricError, match="the answer has status 400"):
        await ask(world, guarded.address.replace("https", "http"), "up")


async def test_gate_reads_a_real_value(world: World, prometheus: RunningPrometheus) -> None:
    await start_controller(world, standalone=False, allow_metric_hosts=(HERE,))
    by_app = RATE.replace('"my-app"', '"{{ .AppName }}"')
    canary = gate("canary", 'metrics["success-rate"].value > 0.97', applies_to=DEV)
    success = check(prometheus.address, query=by_app, successCondition="> 0.97", failureCondition="< 0.9")
    await world.apply(success, canary, pipeline(REPOSITORY, environments=[DEV]))
    await world.settle()
    await world.apply(bundle("app-1"))
    opened = await world.wait_for(
        POLICY_GATE, f"app-1-{DEV}-canary", lambda obj: obj.get("status", {}).get("ready") is True,
        within=timedelta(minutes=2),
    )  # fmt: skip
    assert "metrics.success-rate.value = 0.98" in opened["status"]["reason"]
    stored = await world.get(METRIC_CHECK, "success-rate")
    assert [each["status"] for each in stored["status"]["results"]] == ["Success"]


def _public(pem: str) -> str:
    """Return the certificate of a file that has its key, too."""
    return pem[pem.index("-----BEGIN CERTIFICATE") :]
