"""`kardinal policy list|test|simulate|replay`: what gates are, say, would say and have said."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from kardinal.cli.moments import moment_of
from kardinal.objects import GRAPH
from kardinal.promotion.kinds import BUNDLE, POLICY_GATE
from kardinal_controller.program import ControlPlane
from tests.bundles.scripted_agent import ScriptedAgent, agent, controller
from tests.cli.conftest import Cli
from tests.cli.in_process import InProcess, cli
from tests.support.names import DEV, POLICIES, PROD, STAGING
from tests.support.objects import bundle, gate, pipeline
from tests.support.programs import start_controller, start_simulator
from tests.support.repository import GitRepository
from tests.support.world import World

__all__ = ["agent", "cli", "controller"]

REPOSITORY = "file:///repo"
WHERE = ("--policy-namespaces", POLICIES)


async def before_prod(world: World, agent: ScriptedAgent) -> None:
    """Bring app-1 before prod, where an org gate asks for a weekday, and a team gate for its tier."""
    await world.apply(
        pipeline(REPOSITORY),
        gate("weekday", 'schedule.inWindow("Mon-Fri")', namespace=POLICIES),
        gate("gold", f'bundle.labels.tier == "gold" && upstream["{STAGING}"].version == "1.1.0"'),
    )
    await world.settle()
    await world.apply(bundle("app-1", labels={"tier": "gold"}))
    await agent.verify(f"app-1-{DEV}", f"app-1-{STAGING}")
    await world.wait_for(POLICY_GATE, f"app-1-{PROD}-gold", lambda obj: obj.get("status", {}).get("ready") is True)


async def test_time_that_a_person_writes_is_asked_about(
    world: World, controller: ControlPlane, agent: ScriptedAgent, cli: Cli
) -> None:
    await before_prod(world, agent)
    shown = await cli("policy", "simulate", "my-app", "--env", PROD, "--time", "Saturday 3pm", *WHERE)
    assert "AT: Saturday" in shown
    assert "15:00:00 UTC" in shown
    assert "RESULT: BLOCKED by weekday" in shown
    found = json.loads(
        await cli("policy", "simulate", "--env", PROD, "--time", "2026-03-02T10:00:00Z", *WHERE, "-o", "json")
    )
    assert found == {
        "at": "2026-03-02T10:00:00Z",
        "gates": [
            {"name": "weekday", "scope": "org", "open": True, "reason": 'schedule.inWindow("Mon-Fri") = true'},
            {
                "name": "gold",
                "scope": "team",
                "open": True,
                "reason": f"bundle.labels.tier = gold, upstream.{STAGING}.version = 1.1.0",
            },
        ],
        "open": True,
    }


async def test_span_has_the_times_at_which_gates_that_read_time_alone_are_open(world: World, cli: Cli) -> None:
    await world.apply(
        pipeline(REPOSITORY),
        gate("weekday", 'schedule.inWindow("Mon-Fri")', namespace=POLICIES, timeZone="Asia/Kathmandu"),
        gate("morning", "schedule.hour < 12"),
    )
    found = json.loads(await cli("policy", "simulate", "--env", PROD, "--next", "7d", *WHERE, "-o", "json"))
    assert [each["name"] for each in found["gates"]] == ["weekday", "morning"]
    for intervals in (*(each["intervals"] for each in found["gates"]), found["intervals"]):
        assert all(one["to"] == other["from"] for one, other in pairwise(intervals))
        assert all(one["open"] != other["open"] for one, other in pairwise(intervals))
        assert set(intervals[0]) == {"from", "to", "open"}
    turns = {each["from"][11:] for each in found["gates"][0]["intervals"][1:]}
    assert turns == {"18:15:00Z"}, "midnight in Kathmandu"
    table = await cli("policy", "simulate", "--env", PROD, "--next", "7d", *WHERE)
    assert "all together" in table


async def test_gate_that_was_not_evaluated_yet_says_what_is_not_known(world: World, cli: Cli) -> None:
    await world.apply(pipeline(REPOSITORY), gate("soak", "bundle.upstreamSoakMinutes >= 0"), bundle("app-1"))
    shown = await cli("policy", "simulate", "my-app", "--env", PROD, *WHERE)
    assert "bundle.upstreamSoakMinutes was not recorded" in shown
    assert "RESULT: BLOCKED by soak" in shown


@pytest.mark.virtual_time("a gate reads the day of the week")
async def test_replay_asks_today_and_a_file_with_the_recorded_inputs(
    world: World, controller: ControlPlane, agent: ScriptedAgent, cli: InProcess, tmp_path: Path
) -> None:
    await before_prod(world, agent)
    # Whatever the label says now: it was gold then.
    await world.apply(bundle("app-1", labels={"tier": "tin"}))
    await world.settle()
    found = json.loads(await cli("policy", "replay", "app-1", "--env", PROD, "-o", "json"))
    answers = {each["name"]: (each["recorded"]["open"], each["replayed"]["open"]) for each in found["gates"]}
    assert answers == {"weekday": (True, True), "gold": (False, False)}
    stricter = tmp_path / "gates.yaml"
    other = gate("any-tier", 'bundle.labels.tier in ["gold", "tin"]')
    wider = gate("weekday", "bundle.upstreamSoakMinutes >= 0")
    stricter.write_text(yaml.safe_dump_all([other, wider]))
    found = json.loads(await cli("policy", "replay", "app-1", "--env", PROD, "-f", str(stricter), "-o", "json"))
    answers = {each["name"]: (each["replayed"]["open"], each["replayed"]["reason"]) for each in found["gates"]}
    assert answers == {
        "any-tier": (True, "bundle.labels.tier = tin"),
        "weekday": (False, "bundle.upstreamSoakMinutes was not recorded"),
    }
    shown = await cli("policy", "replay", "app-1", "--env", PROD)
    assert "weekday" in shown


async def test_evidence_keeps_the_inputs_after_the_promotion(world: World, repository: GitRepository, cli: Cli) -> None:
    await start_controller(world)
    await start_simulator(world)
    tier = gate("tier", 'bundle.labels.tier == "gold"', applies_to=DEV)
    await world.apply(pipeline(repository, environments=[DEV]), tier, bundle("app-1", labels={"tier": "gold"}))
    done = await world.wait_for(BUNDLE, "app-1", lambda obj: obj["status"].get("phase") == "Verified")
    (result,) = done["status"]["environments"][DEV]["evidence"]["policyGates"]
    assert result["inputs"]["bundle"]["labels"]["tier"] == "gold"
    await world.delete(GRAPH, "app-1")
    await world.apply(gate("tier", 'bundle.labels.tier == "platinum"', applies_to=DEV))
    found = json.loads(await cli("policy", "replay", "app-1", "--env", DEV, "-o", "json"))
    answers = [(each["recorded"]["open"], each["replayed"]["open"], each["same"]) for each in found["gates"]]
    assert answers == [(True, False, False)]


async def test_bundle_without_a_record_is_not_replayed(world: World, cli: InProcess) -> None:
    await world.apply(pipeline(REPOSITORY), bundle("app-1"))
    done = await cli.attempt("policy", "replay", "app-1", "--env", PROD)
    assert done.code == 1
    assert f"no inputs of gates before {PROD} are recorded of app-1" in done.err


async def test_list_has_the_gates_of_the_team_and_of_the_organisation(
    world: World, controller: ControlPlane, cli: Cli
) -> None:
    await world.apply(pipeline(REPOSITORY), gate("ours", "true"), gate("theirs", "broken(", namespace=POLICIES))
    await world.settle()
    found = json.loads(await cli("policy", "list", *WHERE, "-o", "json"))["gates"]
    assert [(each["name"], each["scope"], each["state"]) for each in found] == [
        ("theirs", "org", "InvalidExpression"),
        ("ours", "team", "Valid"),
    ]
    assert "InvalidExpression" in await cli("policy", "list", *WHERE)


def test_file_is_checked_without_a_cluster(cli: InProcess, tmp_path: Path) -> None:
    path = tmp_path / "gates.yaml"
    good = gate("good", "!schedule.isWeekend && bundle.type == 'image'")
    path.write_text(yaml.safe_dump_all([good, gate("bad", "schedule.hours > 3"), gate("far", "true", timeZone="Mars")]))
    done = cli.run("policy", "test", str(path), "-o", "json")
    assert done.code == 1
    found = {each["name"]: each for each in json.loads(done.out)["gates"]}
    assert found["good"] == {
        "name": "good",
        "valid": True,
        "problem": None,
        "reads": ["bundle.type", "schedule.isWeekend"],
    }
    assert "did you mean schedule.hour?" in found["bad"]["problem"]
    assert "there is no time zone Mars" in found["far"]["problem"]
    path.write_text(yaml.safe_dump(good))
    assert "valid" in cli.run("policy", "test", str(path)).out


TUESDAY = datetime(2026, 3, 3, 14, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Saturday 3pm", datetime(2026, 3, 7, 15, tzinfo=UTC)),
        ("sat 15:00", datetime(2026, 3, 7, 15, tzinfo=UTC)),
        ("Tue 14:30", datetime(2026, 3, 10, 14, 30, tzinfo=UTC)),
        ("Tue 14:31", datetime(2026, 3, 3, 14, 31, tzinfo=UTC)),
        ("Monday 12am", datetime(2026, 3, 9, tzinfo=UTC)),
        ("2026-04-09T12:00:00+02:00", datetime(2026, 4, 9, 10, tzinfo=UTC)),
        ("Saturday", None),
        ("Sat 15", None),
        ("Sat 13pm", None),
        ("Satur 3pm", None),
        ("Sat 24:00", None),
    ],
)
def test_time_is_the_next_one_that_the_words_name(text: str, expected: datetime | None) -> None:
    assert moment_of(text, now=TUESDAY) == expected


@pytest.mark.parametrize("arguments", [("--next", "32d"), ("--next", "7"), ("--next", "0d"), ("--time", "soon")])
def test_times_that_mean_nothing_are_refused(cli: InProcess, arguments: tuple[str, ...]) -> None:
    assert cli.run("policy", "simulate", "--env", "prod", *arguments).code == 2
