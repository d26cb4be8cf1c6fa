"""Workloads whose templates are written for ytt, end to end."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal_supplychain.api.kinds import WORKLOAD
from tests.supplychain.chains import (
    API_VERSION,
    Chains,
    blueprint,
    condition,
    config_map,
    resource,
    template,
    workload,
)
from tests.support.accounts import rule
from tests.support.renderers import program
from tests.support.world import World

YTT = """\
#@ load("@ytt:data", "data")
apiVersion: v1
kind: ConfigMap
metadata:
  name: #@ data.values.workload.metadata.name + "-first"
data:
  #@ for/end param in data.values.workload.spec.params:
  #@yaml/text-templated-strings
  (@= param.name @): #@ param.value
"""
SECOND = template("second", config_map("web-second", copied="$(config.url)$"))
STAMPED = resource("first"), resource("second", configs=[{"name": "c", "resource": "first"}]), resource("third")
CHAIN = blueprint(*STAMPED, serviceAccountRef={"name": "dev"})


def written_for_ytt(text: str) -> JsonObject:
    spec = {"ytt": text, "configPath": "data"}
    return {"apiVersion": API_VERSION, "kind": "ClusterConfigTemplate", "metadata": {"name": "first"}, "spec": spec}


def with_params(**params: str) -> JsonObject:
    return workload(params=[{"name": name, "value": value} for name, value in params.items()])


async def started(world: World, ytt: Path | None) -> Chains:
    chains = await Chains.start(world, ytt=ytt)
    await chains.account("dev", rule("*", on="configmaps"))
    await chains.apply(SECOND, template("third", config_map("web-third", a="b")), CHAIN)
    return chains


async def test_object_of_a_template_of_ytt_is_stamped_and_read(world: World, real_ytt: Path) -> None:
    chains = await started(world, real_ytt)
    await chains.apply(written_for_ytt(YTT), with_params(url="https://x", text="yes"))
    first = await chains.get(CONFIG_MAP, "web-first")
    assert first["data"] == {"url": "https://x", "text": "yes"}
    assert first["metadata"]["labels"]["carto.run/resource-name"] == "first"
    assert (await chains.get(CONFIG_MAP, "web-second"))["data"] == {"copied": "https://x"}
    await chains.apply(with_params(url="https://y"))
    assert (await chains.get(CONFIG_MAP, "web-first"))["data"] == {"url": "https://y"}
    assert (await chains.get(CONFIG_MAP, "web-second"))["data"] == {"copied": "https://y"}


async def test_template_of_ytt_that_fails_leaves_others_alone(world: World, real_ytt: Path) -> None:
    chains = await started(world, real_ytt)
    await chains.apply(written_for_ytt('#@ fail("no url today")\n'), with_params(url="u"))
    first, second, third = (await chains.status())["resources"]
    status, reason, message = condition(first, "ResourceSubmitted")
    assert (status, reason) == ("False", "TemplateStampFailure")
    assert "no url today" in message
    assert condition(second, "ResourceSubmitted")[1] == "WaitingForInput"
    assert condition(third, "Ready")[0] == "True"
    await chains.apply(written_for_ytt(YTT))
    assert condition(await chains.status(), "Ready")[0] == "True"


@pytest.mark.virtual_time("ytt is looked for again after seconds")
async def test_missing_ytt_is_told_until_it_is_there(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    chains = await started(world, None)
    await chains.apply(written_for_ytt(YTT), with_params(url="u"))
    first = await chains.resource("first")
    assert condition(first, "ResourceSubmitted")[1] == "TemplateStampFailure"
    assert "go install" in condition(first, "ResourceSubmitted")[2]
    assert condition(await chains.resource("third"), "Ready")[0] == "True"
    answer = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web-first"}, "data": {"url": "u"}}'
    program(tmp_path, "ytt", f"echo '{answer}'")
    await world.live(timedelta(seconds=30))
    assert condition(await chains.status(), "Ready")[0] == "True"


@pytest.mark.parametrize("ending", ["kill -KILL $$", "echo 'data.values: hidden' >&2; exit 2"])
async def test_ytt_that_is_killed_is_told_and_not_quoted(world: World, tmp_path: Path, ending: str) -> None:
    chains = await started(world, program(tmp_path, "ytt", ending))
    await chains.apply(written_for_ytt(YTT), with_params(url="hidden"))
    status = await chains.status()
    assert condition(status, "ResourcesSubmitted")[1] == "TemplateStampFailure"
    assert "of memory" in condition(status, "ResourcesSubmitted")[2]
    owner = await chains.get(WORKLOAD, "web")
    assert "hidden" not in str(owner["status"])
