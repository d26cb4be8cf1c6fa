"""An Application proves a promotion when it is Synced to the commit, Healthy and at rest, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.objects import JsonObject, Key
from kardinal_agent.health import Verdict, Watched
from kardinal_agent.health.argocd import ArgoCD
from kardinal_agent.health.argocd_application import APPLICATION
from kardinal_agent.health.verdict import MissingObject
from tests.health.argocd_cases import CASES, application
from tests.health.tools import BEFORE, COMMIT, LATER, NEW, Case, change, judged, promotion, promotion_step, remove

STEP = promotion_step({"type": "argocd", "argocd": {"name": "app"}})


def verdict(*found: JsonObject, **fields: Any) -> Verdict:
    return judged(ArgoCD(), STEP, promotion(NEW, **fields), *found)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_state_of_an_application(case: Case) -> None:
    answer = verdict(case.of(application()))
    assert (answer.state, answer.reason) == (case.state, case.reason)
    assert case.words in answer.message
    assert case.says in answer.details
    assert not case.says or case.says not in answer.message


def test_named_application_in_the_namespace_of_argo_cd_is_watched() -> None:
    assert ArgoCD().watches(STEP) == (Watched(kind=APPLICATION, namespace="argocd", name="app"),)
    elsewhere = promotion_step({"type": "argocd", "argocd": {"name": "app", "namespace": "tools"}})
    assert ArgoCD().watches(elsewhere) == (Watched(kind=APPLICATION, namespace="tools", name="app"),)


def test_an_application_that_does_not_exist_is_waited_for() -> None:
    assert verdict().absent == MissingObject(APPLICATION, Key("argocd", "app"), "health.argocd.name")


def test_without_a_name_nothing_is_looked_at() -> None:
    step = promotion_step({"type": "argocd"})
    assert ArgoCD().watches(step) == ()
    assert judged(ArgoCD(), step, promotion(NEW)).message == "health.argocd names no Application"


def test_an_application_that_was_compared_with_a_later_commit_is_a_proof() -> None:
    found = application()
    change("status", "sync", "revision", to=LATER)(found)
    assert verdict(found).state == "healthy"
    assert verdict(found, contains=lambda _: None).message.endswith("it is not known whether it has commit bbbbbbb")


def test_a_degraded_application_that_gets_the_correction_is_not_failed_by_what_it_was() -> None:
    """The Application was Degraded by the version before, and nothing of that judges the new commit."""
    found = application()
    change("status", "health", "status", to="Degraded")(found)
    change("status", "sync", "revision", to=BEFORE)(found)
    assert verdict(found).state == "progressing"
    change("status", "sync", "revision", to=COMMIT)(found)
    change("status", "sync", "status", to="OutOfSync")(found)
    assert verdict(found).state == "progressing"
    change("operation", to={"sync": {"revision": COMMIT}})(found)
    change("status", "sync", "status", to="Synced")(found)
    assert verdict(found).state == "progressing"
    remove("operation")(found)
    assert verdict(found).state == "failed"


def test_revision_does_not_count_while_degraded() -> None:
    """A sync that failed says nothing about what ran before; Degraded does, whether or not a sync goes on."""
    broken = application()
    change("status", "operationState", "phase", to="Failed")(broken)
    assert not verdict(broken).negative
    change("status", "health", "status", to="Degraded")(broken)
    assert verdict(broken).negative
    change("operation", to={"sync": {}})(broken)
    assert (verdict(broken).state, verdict(broken).negative) == ("progressing", True)
    drifted = application()
    change("status", "sync", "status", to="OutOfSync")(drifted)
    assert not verdict(drifted).negative


def test_since_is_the_last_time_that_argo_cd_changed_something() -> None:
    found = application()
    change("status", "health", "status", to="Progressing")(found)
    change("status", "reconciledAt", to="2026-11-21T11:09:00Z")(found)
    since = verdict(found).since
    assert since is not None
    assert since.isoformat() == "2026-11-21T11:09:00+00:00"


def source(url: str, path: str, **fields: str) -> JsonObject:
    return {"repoURL": url, "path": path, "targetRevision": "main", **fields}


OURS = "https://git.example.com/acme/config.git"
CHARTS = "https://charts.example.com"


def multiple(*sources: JsonObject, revisions: list[str]) -> JsonObject:
    found = application()
    remove("spec", "source")(found)
    change("spec", "sources", to=list(sources))(found)
    change("status", "sync", to={"status": "Synced", "revisions": revisions, "comparedTo": {"sources": list(sources)}})(
        found
    )
    change("status", "operationState", "syncResult", to={"revisions": revisions})(found)
    return found


def test_source_of_the_repository_counts_of_several() -> None:
    chart = {"repoURL": CHARTS, "chart": "app", "targetRevision": "1.2.3"}
    values = source(OURS, "", ref="values")
    assert verdict(multiple(chart, values, revisions=["1.2.3", COMMIT])).state == "healthy"
    stale = verdict(multiple(chart, values, revisions=["1.2.3", BEFORE]))
    assert stale.message.endswith("without commit bbbbbbb")
    assert verdict(multiple(chart, values, revisions=["1.2.3"])).message.endswith("not compared its source yet")


def test_sources_of_the_path_count_of_several_of_the_repository() -> None:
    pinned = source(OURS, "bases/app")
    ours = source(OURS, "./apps/prod/")
    assert verdict(multiple(pinned, ours, revisions=[BEFORE, COMMIT])).state == "healthy"
    assert verdict(multiple(pinned, ours, revisions=[COMMIT, BEFORE])).state == "progressing"


def test_several_sources_with_self_heal_wait_for_argo_cd_alone() -> None:
    other = source("https://git.example.com/acme/other", "config")
    ours = source(OURS, "apps/prod")
    found = multiple(other, ours, revisions=[BEFORE, COMMIT])
    change("status", "sync", "status", to="OutOfSync")(found)
    assert "or set selfHeal" in verdict(found).message
    change("spec", "syncPolicy", "automated", "selfHeal", to=True)(found)
    assert verdict(found).message.endswith(": it is OutOfSync")


def test_a_failed_sync_of_several_sources_is_known_by_all_their_revisions() -> None:
    chart = {"repoURL": CHARTS, "chart": "app", "targetRevision": "1.2.3"}
    ours = source(OURS, "apps/prod")
    found = multiple(chart, ours, revisions=["1.2.3", COMMIT])
    change("status", "operationState", "phase", to="Failed")(found)
    assert verdict(found).reason == "SyncFailed"
    change("status", "operationState", "syncResult", "revisions", to=["1.2.2", COMMIT])(found)
    assert verdict(found).state == "healthy"


@pytest.mark.parametrize(
    "url",
    [
        "https://git.example.com/acme/config",
        "https://GIT.example.com/acme/config.git",
        "git@git.example.com:acme/config.git",
        "ssh://git@git.example.com:2222/acme/config",
    ],
)
def test_the_repository_is_the_same_in_every_spelling(url: str) -> None:
    found = application()
    for path in (("spec", "source"), ("status", "sync", "comparedTo", "source")):
        change(*path, "repoURL", to=url)(found)
    assert verdict(found).state == "healthy"


CHILD = {"group": "argoproj.io", "kind": "Application", "namespace": "argocd", "name": "child"}


def parent(*children: JsonObject) -> JsonObject:
    found = application()
    change("status", "resources", to=list(children or (CHILD,)))(found)
    return found


def child(**source_fields: str) -> JsonObject:
    """Return an Application of a chart, compared after its parent was synced."""
    found = application()
    change("metadata", "name", to="child")(found)
    chart = {"repoURL": CHARTS, "chart": "app", "targetRevision": "1.2.3", **source_fields}
    change("spec", "source", to=dict(chart))(found)
    change("status", "sync", to={"status": "Synced", "revision": "1.2.3", "comparedTo": {"source": chart}})(found)
    return found


def test_the_applications_that_an_application_deploys_are_judged_too() -> None:
    assert verdict(parent(), child()).state == "healthy"
    assert (
        verdict(parent()).message == "waits for Application argocd/app: an Application that it deploys cannot be seen"
    )
    bad = child()
    change("status", "health", "status", to="Degraded")(bad)
    answer = verdict(parent(), bad)
    assert (answer.state, answer.reason, answer.negative) == ("failed", "Degraded", True)
    assert "argocd/child" in answer.details
    assert "argocd/child" not in answer.message


def test_a_deployed_application_counts_as_compared_since_its_parent_was_synced() -> None:
    stale = child()
    change("status", "reconciledAt", to="2026-11-21T11:00:59Z")(stale)
    assert verdict(parent(), stale).message.endswith("has not compared an Application since it deployed it")
    moved = child()
    change("spec", "source", "targetRevision", to="1.3.0")(moved)
    assert "not compared its source yet" in verdict(parent(), moved).details


def test_a_deployed_application_of_the_repository_must_have_the_commit() -> None:
    ours = application()
    change("metadata", "name", to="child")(ours)
    assert verdict(parent(), ours).state == "healthy"
    change("status", "sync", "revision", to=BEFORE)(ours)
    assert verdict(parent(), ours).state == "progressing"


def test_applications_of_more_than_one_level_are_named_themselves() -> None:
    nested = child()
    change("status", "resources", to=[CHILD])(nested)
    assert verdict(parent(), nested).message.endswith("deploys others: name that one")
    many = parent(*({**CHILD, "name": f"child-{index}"} for index in range(51)))
    assert verdict(many).message.endswith("it deploys more than 50 Applications: name one of them")
