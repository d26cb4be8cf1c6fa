"""The examples of docs/metrics.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from kardinal.git.secret_hosts import refused_host
from kardinal.objects.secret_purposes import CREDENTIALS_METRICS
from kardinal.promotion.api import Pipeline
from kardinal.promotion.kinds import METRIC_CHECK, POLICY_GATE
from kardinal_controller.metric_checks.servers import MetricHost
from kardinal_controller.options import metric_hosts
from tests.bundles.reading import REPOSITORY
from tests.metrics.serving import HERE, serving_metrics
from tests.support.names import DEV, POLICIES
from tests.support.objects import bundle, pipeline
from tests.support.programs import start_controller
from tests.support.world import World

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text()
PART = PAGE[PAGE.index("## MetricChecks") :]
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PART, flags=re.DOTALL)
DOCUMENTS: list[dict[str, Any]] = [
    document for kind, text in BLOCKS if kind == "yaml" for document in yaml.safe_load_all(text)
]


def of_kind(kind: str) -> dict[str, Any]:
    (found,) = [each for each in DOCUMENTS if each.get("kind") == kind]
    return found


async def test_check_and_gate_open_the_way(world: World) -> None:
    check = of_kind("MetricCheck")
    gate = of_kind("PolicyGate")
    gate["metadata"] |= {"namespace": POLICIES, "labels": {"kardinal.io/applies-to": DEV}}
    check["metadata"]["namespace"] = POLICIES
    async with serving_metrics() as server:
        check["spec"]["provider"]["address"] = server.address
        await start_controller(world, standalone=False, allow_metric_hosts=(HERE,))
        await world.apply(check, gate, pipeline(REPOSITORY, environments=[DEV]))
        await world.settle()
        await world.apply(bundle("app-1"))
        await world.wait_for(
            POLICY_GATE, f"app-1-{DEV}-healthy-before-prod", lambda obj: obj.get("status", {}).get("ready") is True
        )
    assert f'app="my-app",env="{DEV}"' in server.queries[0]
    assert len((await world.get(METRIC_CHECK, "success-rate", POLICIES))["status"]["results"]) == 1


def test_servers_are_listed_by_namespace() -> None:
    (command,) = [text for kind, text in BLOCKS if kind == "sh"]
    (value,) = re.findall(r"'(.*)'", command)
    assert metric_hosts((value,)) == (
        MetricHost("prometheus.monitoring:9090", ("platform-policies",)),
        MetricHost("metrics.team-a.example.com", ("team-a", "team-a-jobs")),
    )


def test_secret_may_be_sent_to_its_server() -> None:
    assert refused_host(of_kind("Secret"), "metrics.team-a.example.com", purpose=CREDENTIALS_METRICS) == ""


def test_environment_is_one_of_a_pipeline() -> None:
    (environments,) = [each["environments"] for each in DOCUMENTS if "environments" in each]
    git = {"url": "https://git.example.com/acme/gitops.git"}
    (prod,) = Pipeline.model_validate({"spec": {"git": git, "environments": environments}}).spec.environments
    assert prod.verify is not None
    assert prod.verify.metrics == ("success-rate",)
