"""Runs: which one is kept, when a new one is made, and which ones are deleted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal.objects import JsonObject
from kardinal_supplychain.api.status import LastRun
from kardinal_supplychain.api.templates import RetentionPolicy, TemplateSpec
from kardinal_supplychain.realize.health import StampedHealth, judge_health
from kardinal_supplychain.realize.retention import UNFINISHED_LIMIT, surplus_runs
from kardinal_supplychain.realize.runs import (
    StampedRun,
    is_same_run,
    is_vanished,
    noted_run,
    own_outcome,
    plan_run,
    runs_of,
    source_of_outputs,
)
from kardinal_supplychain.realize.stamp import ResourcePlace, stamp_object

OWNER: dict[str, Any] = {"kind": "Workload", "metadata": {"name": "web", "namespace": "team", "uid": "owner"}}
PLACE = ResourcePlace(
    blueprint="chain", resource="build", template_kind="ClusterImageTemplate", template="build", lifecycle="immutable"
)
SPEC = TemplateSpec.model_validate({"template": {}, "healthRule": {"singleConditionType": "Succeeded"}})

JUDGED = StampedHealth("True", "AlwaysHealthy")


def judge(obj: JsonObject) -> StampedHealth:
    return judge_health(SPEC, template_kind="ClusterImageTemplate", stamped=obj, has_outputs=False)


def render(value: str, *, name: str | None = None) -> JsonObject:
    """Return the stamped object of a render."""
    metadata = {"name": name} if name else {"generateName": "web-"}
    rendered = {"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": metadata, "spec": {"value": value}}
    return stamp_object(rendered, owner=OWNER, place=PLACE, inputs={})


def succeeded(status: str) -> JsonObject:
    return {"conditions": [{"type": "Succeeded", "status": status}]}


@dataclass
class Cluster:
    """The objects of a namespace and the status of their owner, with a controller that may crash before any write."""

    live: dict[str, JsonObject] = field(default_factory=dict)
    last: LastRun | None = None
    outputs: str | None = None
    made: int = 0
    writes: int = 0
    crash_at: int | None = None

    class Crashed(Exception):
        pass

    def realize(
        self, stamped: JsonObject, policy: RetentionPolicy | None = None, *, hidden: Iterable[str] = ()
    ) -> None:
        """Do one pass; the objects of the names `hidden` are not in its cache yet."""
        unseen = set(hidden)
        seen = [obj for name, obj in self.live.items() if name not in unseen]
        runs = runs_of(seen, self.last, judge)
        if (wanted := plan_run(stamped, runs, self.last).create) is not None:
            runs = runs_of([*seen, self.post(wanted)], self.last, judge)
        source = source_of_outputs(runs, self.last)
        outputs = source.object["spec"]["value"] if source is not None else self.outputs
        last = noted_run(runs, self.last, outputs_of=source)
        for run in surplus_runs(runs, policy, outputs_of=last.outputs_of if last else 0):
            self.write()
            del self.live[run.name]
        if (last, outputs) != (self.last, self.outputs):
            self.write()
            self.last = last
            self.outputs = outputs

    def post(self, wanted: JsonObject) -> JsonObject:
        name = wanted["metadata"]["name"]
        if name in self.live:
            assert is_same_run(self.live[name], wanted)
            return self.live[name]
        self.write()
        self.made += 1
        made = {"uid": f"uid-{self.made}", "creationTimestamp": "2026-01-01T00:00:00Z"}
        self.live[name] = {**wanted, "metadata": {**wanted["metadata"], **made}}
        return self.live[name]

    def write(self) -> None:
        self.writes += 1
        if self.crash_at is not None and self.writes > self.crash_at:
            self.crash_at = None
            raise self.Crashed

    @property
    def newest(self) -> StampedRun:
        return runs_of(self.live.values(), self.last, judge)[0]

    def finish(self, status: str = "True") -> None:
        self.live[self.newest.name]["status"] = succeeded(status)

    def values(self) -> list[str]:
        """Return the renders of the live runs, the newest first."""
        return [run.object["spec"]["value"] for run in runs_of(self.live.values(), self.last, judge)]


def test_run_is_made_once_and_kept() -> None:
    cluster = Cluster()
    for _ in range(3):
        cluster.realize(render("a"))
    assert (cluster.values(), cluster.writes) == (["a"], 2)


def test_run_is_named_by_render_and_predecessor() -> None:
    names = [plan_run(render(value), [], None).create["metadata"]["name"] for value in ("a", "a", "b")]  # type: ignore[index]
    assert names[0] == names[1] != names[2]
    assert names[0].startswith("web-")
    assert len(names[0]) == len("web-") + 10


def test_name_of_a_run_fits_into_a_label() -> None:
    stamped = render("a")
    stamped["metadata"]["generateName"] = "w" * 253 + "-"
    made = plan_run(stamped, [], None).create
    assert made is not None
    assert len(made["metadata"]["name"]) == 63
    assert len(made["metadata"]["generateName"]) == 253


def test_a_render_that_comes_back_is_a_third_run() -> None:
    cluster = Cluster()
    for value in ("a", "b", "a"):
        cluster.realize(render(value))
        cluster.finish()
    assert cluster.values() == ["a", "b", "a"]
    assert len(cluster.live) == 3


def test_a_run_that_is_not_seen_is_found_by_its_name() -> None:
    cluster = Cluster()
    cluster.realize(render("a"))
    cluster.last = None
    cluster.realize(render("a"), hidden=list(cluster.live))
    assert cluster.made == 1


def test_an_unfinished_run_that_is_not_seen_is_found_although_its_predecessor_is_gone() -> None:
    cluster = Cluster()
    cluster.realize(render("a"))
    first = cluster.newest.name
    cluster.realize(render("b"))
    del cluster.live[first]
    cluster.realize(render("b"), hidden=list(cluster.live))
    assert (cluster.made, cluster.values()) == (2, ["b"])


def test_an_unfinished_run_that_is_deleted_is_made_again() -> None:
    """Cartographer crashes on a run that was deleted by hand (#1188)."""
    cluster = Cluster()
    cluster.realize(render("a"))
    cluster.live.clear()
    for _ in range(2):
        cluster.realize(render("a"))
    assert (cluster.made, cluster.values()) == (2, ["a"])


@pytest.mark.parametrize("status", ["True", "False"])
def test_a_finished_run_that_vanishes_is_repeated_only_when_its_render_changes(status: str) -> None:
    """Beyond: Cartographer makes a run anew whenever it is gone, so that one with a time to live runs for ever."""
    cluster = Cluster()
    cluster.realize(render("a"))
    cluster.finish(status)
    cluster.realize(render("a"))
    cluster.live.clear()
    for _ in range(2):
        cluster.realize(render("a"))
    assert (cluster.made, cluster.live) == (1, {})
    cluster.realize(render("b"))
    cluster.realize(render("a"))
    assert (cluster.made, cluster.values()) == (3, ["a", "b"])


def test_an_older_run_is_not_taken_for_the_last_one_that_vanished() -> None:
    cluster = Cluster()
    for value in ("a", "b"):
        cluster.realize(render(value))
        cluster.finish()
        cluster.realize(render(value))
    del cluster.live[cluster.newest.name]
    cluster.realize(render("b"))
    assert cluster.values() == ["a"]
    cluster.realize(render("a"))
    assert (cluster.values(), cluster.made) == (["a", "a"], 3)


def test_outputs_stem_from_the_newest_healthy_run() -> None:
    cluster = Cluster()
    outputs = []
    for value, status in (("a", "True"), ("b", "False"), ("c", "True")):
        cluster.realize(render(value))
        cluster.finish(status)
        cluster.realize(render(value))
        outputs.append(cluster.outputs)
    assert outputs == ["a", "a", "c"]


def test_outputs_do_not_go_back_when_their_run_vanishes() -> None:
    cluster = Cluster()
    for value, status in (("a", "True"), ("b", "True"), ("c", "False")):
        cluster.realize(render(value))
        cluster.finish(status)
        cluster.realize(render(value))
    for run in runs_of(cluster.live.values(), cluster.last, judge)[:2]:
        del cluster.live[run.name]
    cluster.realize(render("c"))
    assert (cluster.values(), cluster.outputs) == (["a"], "b")


def test_a_run_whose_annotations_are_removed_is_kept() -> None:
    """Otherwise a webhook that removes them would make runs for ever (#587)."""
    cluster = Cluster()
    cluster.realize(render("a"))
    cluster.newest.object["metadata"]["annotations"].clear()
    cluster.newest.object["spec"]["value"] = "changed by a webhook"
    cluster.realize(render("a"))
    assert cluster.made == 1


def test_a_run_of_cartographer_is_taken_over() -> None:
    """Cartographer writes no hash; its run is kept if it contains the render, whatever its labels are."""
    cluster = Cluster(live={"web-x7": {**render("a"), "status": succeeded("True")}})
    metadata = cluster.live["web-x7"]["metadata"]
    metadata |= {"name": "web-x7", "uid": "old", "annotations": {}, "labels": {"carto.run/workload-name": "web"}}
    cluster.realize(render("a"))
    assert (cluster.made, cluster.outputs) == (0, "a")
    cluster.realize(render("b"))
    assert cluster.values() == ["b", "a"]


@pytest.mark.parametrize("number", ["", "-1", "x", "9" * 400, "\u0663"])
def test_a_number_that_is_none_counts_as_0(number: str) -> None:
    obj = {**render("a")}
    obj["metadata"] = {**obj["metadata"], "name": "x", "uid": "u", "annotations": {"kardinal.io/sequence": number}}
    assert runs_of([obj], None, judge)[0].sequence == 0


def test_a_fixed_name_is_asked_for_again_when_the_render_changes() -> None:
    """The server answers AlreadyExists, and the object of that name is not the run: the resource is refused."""
    cluster = Cluster()
    cluster.realize(render("a", name="fixed"))
    cluster.realize(render("a", name="fixed"))
    assert cluster.made == 1
    wanted = plan_run(render("b", name="fixed"), runs_of(cluster.live.values(), cluster.last, judge), cluster.last)
    assert wanted.create is not None
    assert wanted.create["metadata"]["name"] == "fixed"
    assert not is_same_run(cluster.live["fixed"], wanted.create)


@pytest.mark.parametrize("uid", ["other", None])
def test_an_object_of_another_owner_is_not_the_run(uid: str | None) -> None:
    live = render("a", name="fixed")
    reference = {**live["metadata"]["ownerReferences"][0], "uid": uid}
    live["metadata"] = {**live["metadata"], "ownerReferences": [reference] if uid else []}
    assert not is_same_run(live, render("a", name="fixed"))


@pytest.mark.parametrize(
    ("conditions", "outcome"),
    [
        ([], "unfinished"),
        ([{"type": "Suspended", "status": "True"}], "unfinished"),
        ([{"type": "FailureTarget", "status": "True"}], "unfinished"),
        ([{"type": "Complete", "status": "True"}], "succeeded"),
        ([{"type": "Failed", "status": "True"}], "failed"),
    ],
)
def test_a_job_says_whether_it_has_finished(conditions: list[Any], outcome: str) -> None:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "status": {"conditions": conditions}}
    assert own_outcome(job) == outcome
    healthy = StampedRun(job, StampedHealth("True", "AlwaysHealthy"), 1, "")
    assert healthy.outcome == ("succeeded" if outcome == "failed" else outcome)
    assert StampedRun(job, StampedHealth("Unknown", "CompleteCondition"), 1, "").outcome == outcome


def test_a_mutable_job_that_finished_and_is_gone_is_not_applied_as_it_was() -> None:
    stamped = render("a", name="job")
    stamp = stamped["metadata"]["annotations"]["kardinal.io/stamp"]
    last = LastRun(name="job", uid="u", stamp=stamp, sequence=0, outcome="failed")
    assert is_vanished(stamped, None, last)
    assert not is_vanished(stamped, stamped, last)
    assert not is_vanished(render("b", name="job"), None, last)
    assert not is_vanished(stamped, None, last.model_copy(update={"outcome": "unfinished"}))


def test_newest_runs_of_each_outcome_are_kept() -> None:
    cluster = Cluster()
    policy = RetentionPolicy(max_failed_runs=1, max_successful_runs=2)
    for number in range(12):
        cluster.realize(render(str(number)), policy)
        cluster.finish("False" if number % 3 else "True")
        cluster.realize(render(str(number)), policy)
    assert cluster.values() == ["11", "9", "6"]


def test_the_source_of_the_outputs_is_kept() -> None:
    """Cartographer deletes it, if newer runs of the same health have no outputs."""
    runs = [
        StampedRun({"metadata": {}, "kind": "X"}, StampedHealth("True", "x"), number, "") for number in (4, 3, 2, 1)
    ]
    assert [run.sequence for run in surplus_runs(runs, RetentionPolicy(max_successful_runs=1), outputs_of=2)] == [1, 3]


def test_unfinished_runs_are_kept_up_to_a_number_of_their_own() -> None:
    """Beyond: Cartographer keeps every run that has not finished."""
    cluster = Cluster()
    for number in range(UNFINISHED_LIMIT + 5):
        cluster.realize(render(str(number)))
    assert len(cluster.live) == UNFINISHED_LIMIT


def test_a_run_that_is_being_deleted_does_not_count() -> None:
    runs = [StampedRun({"metadata": {}, "kind": "X"}, JUDGED, number, "") for number in (3, 2, 1)]
    runs[1].object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert surplus_runs(runs, RetentionPolicy(max_successful_runs=2), outputs_of=3) == []


EVENTS = st.lists(
    st.tuples(
        st.sampled_from(["render", "succeed", "fail", "delete newest", "delete oldest", "nothing"]),
        st.sampled_from("abc"),
        st.integers(0, 4),
    ),
    max_size=15,
)


@settings(max_examples=100)
@given(EVENTS)
def test_runs_are_the_same_wherever_the_controller_crashes(events: list[tuple[str, str, int]]) -> None:
    """A pass that crashes before any of its writes and is done again makes what an undisturbed one makes."""
    policy = RetentionPolicy(max_failed_runs=2, max_successful_runs=2)
    undisturbed = Cluster()
    crashing = Cluster()
    value = "a"
    for event, letter, crash_at in [("render", "a", 1), *events]:
        value = letter if event == "render" else value
        for cluster in (undisturbed, crashing):
            _happen(cluster, event)
        undisturbed.realize(render(value), policy)
        crashing.crash_at = crashing.writes + crash_at
        try:
            crashing.realize(render(value), policy)
        except Cluster.Crashed:
            crashing.realize(render(value), policy)
        crashing.crash_at = None
        assert (crashing.live, crashing.last, crashing.outputs) == (
            undisturbed.live,
            undisturbed.last,
            undisturbed.outputs,
        )
    writes = undisturbed.writes
    undisturbed.realize(render(value), policy)
    assert undisturbed.writes == writes


@settings(max_examples=100)
@given(EVENTS)
def test_each_render_has_one_run(events: list[tuple[str, str, int]]) -> None:
    """Runs are made for changes of the render, and for unfinished runs that were deleted, and for nothing else."""
    cluster = Cluster()
    value = "a"
    expected = 0
    known: tuple[str, str] | None = None  # render and outcome of the last run, as the last pass saw them
    for event, letter, _ in events:
        value = letter if event == "render" else value
        _happen(cluster, event)
        is_gone = cluster.last is not None and cluster.last.name not in cluster.live
        if known is None or known[0] != value or (is_gone and known[1] == "unfinished"):
            expected += 1
        cluster.realize(render(value))
        assert cluster.made == expected
        assert cluster.last is not None
        known = value, cluster.last.outcome


def _happen(cluster: Cluster, event: str) -> None:
    if not cluster.live or event in ("render", "nothing"):
        return
    match event:
        case "succeed":
            cluster.finish("True")
        case "fail":
            cluster.finish("False")
        case "delete newest":
            del cluster.live[cluster.newest.name]
        case "delete oldest":
            del cluster.live[runs_of(cluster.live.values(), cluster.last, judge)[-1].name]
