"""Runnables end to end: when runs are made, what is read from them, and which are removed."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from kardinal.objects import CONFIG_MAP, JsonObject
from kardinal_supplychain.api.kinds import CLUSTER_RUN_TEMPLATE, RUNNABLE
from tests.graph.interruptions import cut_after
from tests.supplychain.chains import KILL_SEEDS, KILLS, Chains, Requests, condition, conditions
from tests.supplychain.widgets import WIDGET, finish, install_widgets, run_template, runnable, widget_body, widgets
from tests.support.accounts import allow, rule
from tests.support.names import TEAM

MAY_RUN = rule("*", on="widgets", group="example.com")
WAITING = [
    ("RunTemplateReady", "True", "Ready"),
    ("StampedObjectCondition", "Unknown", "Unknown"),
    ("Ready", "Unknown", "Unknown"),
]
SUCCEEDED = [
    ("RunTemplateReady", "True", "Ready"),
    ("StampedObjectCondition", "True", "SucceededCondition"),
    ("Ready", "True", "Ready"),
]


@pytest.fixture
async def running(chains: Chains) -> Chains:
    """Return a world in which a run of the Runnable `tests` was made and has not finished."""
    await install_widgets(chains)
    await chains.account("runner", MAY_RUN, rule("get", "list", on="configmaps"))
    await chains.apply(run_template(url="status.url"), runnable())
    return chains


async def status(chains: Chains, name: str = "tests") -> JsonObject:
    return await chains.status(name, RUNNABLE)


async def values(chains: Chains) -> list[object]:
    """Return the values that the runs were made with, the newest first."""
    return [run["spec"]["value"] for run in await widgets(chains)]


async def test_run_gives_its_outputs_once_it_succeeded(running: Chains) -> None:
    [run] = await widgets(running)
    assert run["metadata"]["name"].startswith("run-")
    assert run["metadata"]["labels"] == {"carto.run/runnable-name": "tests", "carto.run/run-template-name": "checks"}
    assert conditions(await status(running)) == WAITING
    await finish(running, run, url="https://x/a.tgz")
    found = await status(running)
    assert (found["outputs"], conditions(found)) == ({"url": "https://x/a.tgz"}, SUCCEEDED)
    assert found["observedGeneration"] == 1
    assert condition(found, "StampedObjectCondition")[2] == "done"


async def test_run_is_written_by_the_account(running: Chains) -> None:
    wrote: list[tuple[str, str, str]] = []
    running.world.audit.subscribe(lambda each: wrote.append((each.user, each.verb, each.resource)))
    await running.apply(runnable(value="b"))
    assert (f"system:serviceaccount:{TEAM}:runner", "create", "widgets.example.com") in wrote


async def test_changed_input_makes_a_run_and_keeps_the_outputs_until_it_succeeds(running: Chains) -> None:
    await finish(running, (await widgets(running))[0], url="one")
    await running.apply(runnable(value="b"))
    assert await values(running) == ["b", "a"]
    found = await status(running)
    assert (found["outputs"], conditions(found)) == ({"url": "one"}, WAITING)
    await finish(running, (await widgets(running))[0], status="False")
    found = await status(running)
    assert found["outputs"] == {"url": "one"}
    assert conditions(found)[-1] == ("Ready", "False", "SucceededCondition")


async def test_input_that_comes_back_makes_a_third_run(running: Chains) -> None:
    await running.apply(runnable(value="b"))
    await running.apply(runnable(value="a"))
    assert await values(running) == ["a", "b", "a"]


async def test_changed_template_makes_a_run(running: Chains) -> None:
    await running.apply(run_template(body=widget_body(value="fixed"), url="status.url"))
    assert await values(running) == ["fixed", "a"]


async def test_changes_of_a_run_make_no_other(running: Chains) -> None:
    """Cartographer made runs for ever where a server stores an object otherwise than it was sent (#587)."""
    [run] = await widgets(running)
    for number in range(3):
        marks = {"annotations": {"kardinal.io/stamp": None, "note": str(number)}, "labels": {"x": str(number)}}
        body = {"metadata": marks, "spec": {"value": f"changed {number}"}}
        await running.world.client.patch(WIDGET, run["metadata"]["name"], TEAM, body)
        await running.world.settle()
    assert len(await widgets(running)) == 1


async def test_runnables_of_one_template_have_runs_of_their_own(running: Chains) -> None:
    """In Cartographer two of them took turns in stamping (#930)."""
    await running.apply(runnable("others"))
    made = {run["metadata"]["uid"] for run in await widgets(running)}
    assert len(made) == 2
    for run in await widgets(running):
        await finish(running, run, url=run["metadata"]["ownerReferences"][0]["name"])
    assert {run["metadata"]["uid"] for run in await widgets(running)} == made
    for name in ("tests", "others"):
        assert (await status(running, name))["outputs"] == {"url": name}


async def test_restart_writes_nothing(running: Chains) -> None:
    requests = Requests(running)
    await running.restart()
    assert (await requests.take()).made == []


async def test_unfinished_run_that_is_deleted_is_made_again(running: Chains) -> None:
    """Cartographer stopped at a run that was deleted by hand (#1188)."""
    [run] = await widgets(running)
    await running.world.delete(WIDGET, run["metadata"]["name"])
    [again] = await widgets(running)
    assert again["metadata"]["uid"] != run["metadata"]["uid"]
    assert again["metadata"]["name"] == run["metadata"]["name"]


async def test_finished_run_that_vanishes_is_not_repeated(running: Chains) -> None:
    """Beyond: Cartographer stamps it again, so that a Job with a time to live runs for ever."""
    [run] = await widgets(running)
    await finish(running, run, url="kept")
    await running.world.settle()
    await running.world.delete(WIDGET, run["metadata"]["name"])
    assert await widgets(running) == []
    await running.restart()
    assert await widgets(running) == []
    found = await status(running)
    assert (found["outputs"], conditions(found)) == ({"url": "kept"}, SUCCEEDED)
    await running.apply(runnable(value="b"))
    assert await values(running) == ["b"]


async def test_run_that_finishes_and_vanishes_at_once_is_not_repeated(running: Chains) -> None:
    [run] = await widgets(running)
    await finish(running, run, url="kept")
    # Before the controller had a chance to look: a time to live of no seconds.
    await running.world.delete(WIDGET, run["metadata"]["name"])
    assert await widgets(running) == []
    assert (await status(running))["outputs"] == {"url": "kept"}


async def test_successful_run_without_an_output_is_told(running: Chains) -> None:
    await finish(running, (await widgets(running))[0])
    found = await status(running)
    assert conditions(found) == [
        ("RunTemplateReady", "False", "OutputPathNotSatisfied"),
        ("StampedObjectCondition", "True", "SucceededCondition"),
        ("Ready", "False", "OutputPathNotSatisfied"),
    ]
    assert "status.url" in condition(found, "Ready")[2]
    assert "outputs" not in found


async def test_missing_template_is_awaited(running: Chains) -> None:
    await running.apply(runnable("late", template="late"))
    assert conditions(await status(running, "late")) == [
        ("RunTemplateReady", "False", "RunTemplateNotFound"),
        ("StampedObjectCondition", "Unknown", "Unknown"),
        ("Ready", "False", "RunTemplateNotFound"),
    ]
    await running.apply(run_template("late"))
    assert conditions(await status(running, "late")) == WAITING
    await running.world.client.delete(CLUSTER_RUN_TEMPLATE, "late")
    assert condition(await status(running, "late"), "Ready")[1] == "RunTemplateNotFound"
    assert len(await widgets(running)) == 2


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (widget_body(value="$(runnable.spec.inputs.missing)$"), "path [spec.value]"),
        (widget_body(value="$(selected.data)$"), "path [spec.value]"),
        ({"apiVersion": "v1", "metadata": {"generateName": "x-"}}, "kind"),
        ({"apiVersion": "v1", "kind": "Namespace", "metadata": {"generateName": "x-"}}, "cluster-scoped"),
        ({**widget_body(), "metadata": {"generateName": "x-", "namespace": "other"}}, "namespace"),
    ],
)
async def test_template_of_which_nothing_can_be_made_is_told(running: Chains, body: JsonObject, said: str) -> None:
    await running.apply(run_template("wrong", body), runnable("wrong", template="wrong"))
    _, reason, message = condition(await status(running, "wrong"), "RunTemplateReady")
    assert reason == "TemplateStampFailure"
    assert said in message


async def test_kind_that_is_not_served_is_awaited(chains: Chains) -> None:
    await chains.account("runner", MAY_RUN)
    await chains.apply(run_template(), runnable())
    assert condition(await status(chains), "Ready")[1] == "StampedObjectRejectedByAPIServer"
    await install_widgets(chains)
    # A real server is not ready for a watch of the kind at once, which is tried again a second later.
    await chains.world.wait_for(RUNNABLE, "tests", lambda obj: conditions(obj.get("status", {})) == WAITING)


async def test_account_that_may_not_create_is_woken_by_its_rights(running: Chains) -> None:
    await running.account("poor", rule("get", on="widgets", group="example.com"))
    await running.apply(runnable("poor", serviceAccountName="poor"))
    assert condition(await status(running, "poor"), "Ready")[1] == "StampedObjectRejectedByAPIServer"
    await allow(running.world, "poor", MAY_RUN)
    assert conditions(await status(running, "poor")) == WAITING


async def test_account_that_does_not_exist_is_awaited(running: Chains) -> None:
    await running.apply(runnable("nobody", serviceAccountName="nobody"))
    assert conditions(await status(running, "nobody")) == [
        ("RunTemplateReady", "False", "ServiceAccountError"),
        ("Ready", "False", "ServiceAccountError"),
    ]
    await running.account("nobody", MAY_RUN)
    assert conditions(await status(running, "nobody")) == WAITING


def selecting(**labels: str) -> JsonObject:
    selector = {"resource": {"apiVersion": "v1", "kind": "ConfigMap"}, "matchingLabels": labels}
    return runnable("selecting", template="selecting", selector=selector)


async def settings(chains: Chains, name: str, value: str, namespace: str = TEAM) -> None:
    metadata = {"name": name, "namespace": namespace, "labels": {"for": "tests"}}
    await chains.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"value": value}})


async def test_selected_object_is_read_and_watched(running: Chains) -> None:
    """Beyond: in Cartographer a change of it makes a run when the Runnable is looked at next."""
    await running.apply(run_template("selecting", widget_body(value="$(selected.data.value)$")))
    await running.apply(selecting(**{"for": "tests"}))
    assert condition(await status(running, "selecting"), "Ready")[1:] == (
        "TemplateStampFailure",
        "unable to resolve selector [map[for:tests]], apiVersion [v1], kind [ConfigMap]: "
        "selector did not match any objects",
    )
    await settings(running, "one", "first")
    assert conditions(await status(running, "selecting")) == WAITING
    await settings(running, "one", "second")
    assert sorted(map(str, await values(running))) == ["a", "first", "second"]
    await settings(running, "two", "third")
    assert "multiple objects" in condition(await status(running, "selecting"), "Ready")[2]
    await running.world.delete(CONFIG_MAP, "two")
    assert conditions(await status(running, "selecting")) == WAITING
    assert sorted(map(str, await values(running))) == ["a", "first", "second"]


async def test_object_is_selected_with_the_rights_of_the_account(running: Chains) -> None:
    await running.account("blind", MAY_RUN)
    await running.apply(run_template("selecting", widget_body(value="$(selected.data.value)$")))
    await settings(running, "one", "first")
    asking = selecting(**{"for": "tests"})
    asking["spec"]["serviceAccountName"] = "blind"
    await running.apply(asking)
    _, reason, message = condition(await status(running, "selecting"), "Ready")
    assert reason == "TemplateStampFailure"
    assert "forbidden" in message
    await allow(running.world, "blind", MAY_RUN, rule("list", on="configmaps"))
    assert conditions(await status(running, "selecting")) == WAITING


async def test_values_of_a_secret_are_in_no_status(running: Chains) -> None:
    await running.account("keeper", rule("*", on="secrets"))
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"generateName": "s-"},
        "stringData": {"key": "hidden-value"},
    }
    await running.apply(run_template("secret", body, key="data.key"))
    await running.apply(runnable("secret", template="secret", serviceAccountName="keeper"))
    assert "hidden-value" not in str(await status(running, "secret"))
    assert "outputs" not in await status(running, "secret")


async def test_surplus_runs_are_removed(running: Chains) -> None:
    await running.apply(runnable(retentionPolicy={"maxFailedRuns": 1, "maxSuccessfulRuns": 1}))
    for value, result in (("a", "True"), ("b", "False"), ("c", "True"), ("d", "False"), ("e", "True")):
        await running.apply(
            runnable(value=value, retentionPolicy={"maxFailedRuns": 1, "maxSuccessfulRuns": 1}),
        )
        await finish(running, (await widgets(running))[0], status=result, url=value)
    assert await values(running) == ["e", "d"]
    assert (await status(running))["outputs"] == {"url": "e"}


@pytest.mark.virtual_time("the next try is a minute later")
async def test_removal_that_is_forbidden_is_told_and_tried_again(running: Chains) -> None:
    """Cartographer logs it, and deletes nothing before the next change."""
    creating = rule("create", "get", on="widgets", group="example.com")
    await running.account("weak", creating)
    spec: dict[str, Any] = {
        "serviceAccountName": "weak",
        "retentionPolicy": {"maxFailedRuns": 1, "maxSuccessfulRuns": 1},
    }
    await running.world.delete(RUNNABLE, "tests")
    for run in await widgets(running):
        await running.world.delete(WIDGET, run["metadata"]["name"])
    for value in ("a", "b"):
        await running.apply(runnable(value=value, **spec))
        await finish(running, (await widgets(running))[0], url=value)
    assert await values(running) == ["b", "a"]
    [event] = await running.world.events("StampedObjectNotRemoved")
    assert event["regarding"]["name"] == "tests"
    await allow(running.world, "weak", MAY_RUN)
    assert await values(running) == ["b", "a"]
    await running.world.live(timedelta(minutes=1))
    assert await values(running) == ["b"]
    assert len(await running.world.events("StampedObjectRemoved")) == 1


@pytest.mark.parametrize("away", [False, True], ids=["running", "away"])
async def test_runs_of_a_kind_that_is_stamped_no_more_are_removed(running: Chains, away: bool) -> None:
    """Cartographer leaves them, whatever the retention policy says; here also those of a change while it was away."""
    await running.apply(runnable(value="b"))
    assert await values(running) == ["b", "a"]
    await running.account("runner", MAY_RUN, rule("*", on="configmaps"))
    if away:
        await running.world.stop(running.program)
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-"}, "data": {"a": "b"}}
    await running.world.client.apply(
        CLUSTER_RUN_TEMPLATE, run_template(body=body, url="data.a"), field_manager="test", force=True
    )
    if away:
        running.program = await Chains.run(running.world)
    assert await values(running) == []
    found = await status(running)
    [made] = await running.world.objects(CONFIG_MAP, TEAM, labels="carto.run/runnable-name=tests")
    assert (found["stampedRef"]["kind"], found["stampedRef"]["uid"]) == ("ConfigMap", made["metadata"]["uid"])
    assert "orphans" not in found


@pytest.mark.virtual_time("the next try is a minute later")
async def test_run_of_an_earlier_kind_that_may_not_be_deleted_is_listed(running: Chains) -> None:
    await allow(running.world, "runner", rule("get", on="widgets", group="example.com"), rule("*", on="configmaps"))
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "run-"}, "data": {"a": "b"}}
    await running.apply(run_template(body=body, url="data.a"))
    [run] = await widgets(running)
    await running.restart()
    assert [each["uid"] for each in (await status(running))["orphans"]] == [run["metadata"]["uid"]]
    await allow(running.world, "runner", MAY_RUN, rule("*", on="configmaps"))
    await running.world.live(timedelta(minutes=1))
    assert await widgets(running) == []
    assert "orphans" not in await status(running)


async def test_run_of_another_owner_is_not_removed(running: Chains) -> None:
    """A person gave the run to another owner while the program was away."""
    await finish(running, (await widgets(running))[0], url="a")
    [run] = await widgets(running)
    spec: dict[str, Any] = {"retentionPolicy": {"maxFailedRuns": 1, "maxSuccessfulRuns": 1}}
    await running.apply(runnable(**spec))
    body = {"metadata": {"ownerReferences": None}}
    await running.world.client.patch(WIDGET, run["metadata"]["name"], TEAM, body)
    for value in ("b", "c"):
        await running.apply(runnable(value=value, **spec))
        await finish(running, next(each for each in await widgets(running) if each["spec"]["value"] == value), url="x")
    await running.world.settle()
    assert sorted(map(str, await values(running))) == ["a", "c"]


@pytest.mark.parametrize("seed", KILL_SEEDS)
async def test_runs_are_what_they_were_wherever_the_program_is_killed(running: Chains, seed: int) -> None:
    """A hundred kills before any of its writes: no run is lost, and none is made twice."""
    rng = random.Random(seed)
    policy = {"maxFailedRuns": 100, "maxSuccessfulRuns": 100}
    value = "a"
    for _ in range(KILLS):
        runs = await widgets(running)
        before = {run["metadata"]["uid"] for run in runs}
        cut_after(running.program.manager.client, rng.randrange(3))
        changed = rng.choice(["a", "b", "c", value])
        if changed == value:
            await finish(running, rng.choice(runs), status=rng.choice(["True", "False"]), url=value)
        else:
            after = runnable(value=changed, retentionPolicy=policy)
            await running.world.client.apply(RUNNABLE, after, field_manager="test", force=True)
        await running.world.settle()
        await running.restart()
        now = {run["metadata"]["uid"] for run in await widgets(running)}
        assert before <= now
        assert len(now - before) == (0 if changed == value else 1)
        value = changed
