"""Recordings of real controllers, replayed: in any order across objects no old version is proved and no new one missed.

An adapter keeps nothing, so the verdict depends only on which version of each object is seen. All pairs of versions
are therefore all interleavings of two sequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest

from kardinal.objects import JsonObject
from kardinal_agent.health import Verdict
from kardinal_agent.health.argocd import ArgoCD
from kardinal_agent.health.flux import Flux
from kardinal_agent.health.flux_common import commit_of
from tests.health.recordings import Moment, argo_cd, flux
from tests.health.tools import judged, promotion, promotion_step

IMAGE = "127.0.0.1:5998/hello"
ARGO_CD = promotion_step({"type": "argocd", "argocd": {"name": "app"}}, promotedAt=None)
FLUX = promotion_step({"type": "flux", "flux": {"name": "app"}}, promotedAt=None)


@dataclass(frozen=True)
class Promoted:
    """A commit of the recording: its image, the last moment of its time, and the verdict there."""

    digits: str
    tag: str
    until: str
    state: str


FLUX_HISTORY = (
    Promoted("e9bd082", "v1", "2-just-after-push", "healthy"),
    Promoted("1463dcf", "v2", "4-healthy-v2", "healthy"),
    Promoted("d3ef0", "broken", "5c-healthcheckfailed", "failed"),
    Promoted("1b581bb", "v3", "6-recovered-v3", "healthy"),
    Promoted("9611d6e", "v3", "7-broken-manifest-schema", "failed"),
    Promoted("c4c9343", "v3", "7b-broken-manifest-yaml", "failed"),
    Promoted("f5b52ec", "v3", "8-fixed", "healthy"),
    Promoted("dc1336b", "v4", "11b-spec-change-done", "healthy"),
    Promoted("29aef7e", "v4", "17-controller-dead-after-push", "healthy"),
    Promoted("0ae6d6e", "v5", "19-externalartifact-gate-on", "healthy"),
)
ARGO_CD_HISTORY = (
    Promoted("0ae6d6e", "v1", "1-initial", "healthy"),
    Promoted("0f5963b", "v9", "2-just-after-push", "healthy"),
    Promoted("4d73866", "v10", "4-healthy-v10", "healthy"),
    Promoted("34f15cf", "broken", "5b-broken-image-degraded", "failed"),
    Promoted("cdc7400", "v11", "6-recovered-v11", "healthy"),
    Promoted("bbeabc7", "v11", "7-broken-schema", "progressing"),
    Promoted("6a1236f", "v11", "8-fixed", "healthy"),
    Promoted("e7824c0", "v11", "10-skip-reconcile-after-push", "progressing"),
)


def number(history: Sequence[Promoted], commit: str | None) -> int:
    """Return the place of a commit in a history, -1 for none."""
    return next((index for index, each in enumerate(history) if commit and commit.startswith(each.digits)), -1)


def verdict_of_flux(index: int, found: JsonObject, deployment: JsonObject | None) -> Verdict:
    promoted = promotion(
        f"{IMAGE}:{FLUX_HISTORY[index].tag}", contains=lambda commit: number(FLUX_HISTORY, commit) >= index
    )
    return judged(Flux(), FLUX, promoted, found, *([deployment] if deployment is not None else ()))


def verdict_of_argo_cd(index: int, found: JsonObject) -> Verdict:
    promoted = promotion(
        f"{IMAGE}:{ARGO_CD_HISTORY[index].tag}",
        contains=lambda commit: number(ARGO_CD_HISTORY, commit) >= index,
        repository="http://git.example/deploy.git",
        path="apps/argo",
    )
    return judged(ArgoCD(), ARGO_CD, promoted, found)


def pairs(moments: Sequence[Moment]) -> Iterator[tuple[Moment, Moment]]:
    """Yield every version of the tool's object with every version of the Deployment."""
    return ((one, other) for one in moments for other in moments)


def image_of(deployment: JsonObject | None) -> str:
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"] if deployment is not None else ""


def ready_of(found: JsonObject) -> tuple[str, str]:
    conditions = {each["type"]: each for each in found["status"].get("conditions", ())}
    ready = conditions.get("Ready", {})
    return ready.get("status", ""), ready.get("reason", "")


@pytest.mark.parametrize("index", range(len(FLUX_HISTORY)), ids=[each.digits for each in FLUX_HISTORY])
def test_flux_proves_no_old_version_in_any_order(index: int) -> None:
    """The applied revision has the commit, Ready is True, nothing is suspended, and the workload runs the image."""
    healthy = 0
    for one, other in pairs(flux()):
        if verdict_of_flux(index, one.found, other.deployment).state == "healthy":
            applied = commit_of(one.found["status"]["lastAppliedRevision"])
            assert number(FLUX_HISTORY, applied) >= index, one.name
            assert ready_of(one.found)[0] == "True", one.name
            assert not one.found["spec"].get("suspend"), one.name
            assert image_of(other.deployment) == f"{IMAGE}:{FLUX_HISTORY[index].tag}", other.name
            healthy += 1
    assert healthy or FLUX_HISTORY[index].tag == "broken"


@pytest.mark.parametrize("index", range(len(FLUX_HISTORY)), ids=[each.digits for each in FLUX_HISTORY])
def test_flux_fails_no_version_for_what_came_before_it(index: int) -> None:
    """A failure is of an attempt at the commit or at a later one, and never of a passing state."""
    for one, other in pairs(flux()):
        if verdict_of_flux(index, one.found, other.deployment).state == "failed":
            attempted = commit_of(one.found["status"]["lastAttemptedRevision"])
            assert number(FLUX_HISTORY, attempted) >= index, one.name
            ended = ready_of(one.found)[1] in ("HealthCheckFailed", "BuildFailed", "ReconciliationFailed")
            assert ended or image_of(other.deployment) == f"{IMAGE}:broken", (one.name, other.name)


@pytest.mark.parametrize("promoted", FLUX_HISTORY, ids=lambda each: each.digits)
def test_flux_misses_no_version(promoted: Promoted) -> None:
    """Every order ends with both objects as they were last, before the next commit came."""
    last = next(each for each in flux() if each.name == promoted.until)
    assert verdict_of_flux(FLUX_HISTORY.index(promoted), last.found, last.deployment).state == promoted.state


@pytest.mark.parametrize(
    ("moment", "words"),
    [
        ("0-no-controller", "it has applied nothing yet"),
        ("2-just-after-push", "is without"),
        ("3-reconciling", ": it is reconciling"),
        ("9b-suspended-after-push", "it is suspended"),
        ("9c-suspended-after-reconcile-request", "it is suspended"),
        ("10a-resumed-instant", "it is reconciling"),
        ("13-bad-path", "its source is missing"),
        ("14-externalartifact", "Stalled since before"),
        ("15-missing-source", "its source is missing"),
        ("17-controller-dead-after-push", "is without"),
    ],
)
def test_a_moment_of_flux_is_told_as_it_is(moment: str, words: str) -> None:
    """The version that is promoted is one that has not been applied yet."""
    found = next(each for each in flux() if each.name == moment)
    answer = judged(Flux(), FLUX, promotion(f"{IMAGE}:v6", commits=()), found.found)
    assert answer.state == "progressing"
    assert words in answer.message


@pytest.mark.parametrize("index", range(len(ARGO_CD_HISTORY)), ids=[each.digits for each in ARGO_CD_HISTORY])
def test_argo_cd_proves_no_old_version_at_any_moment(index: int) -> None:
    for each in argo_cd():
        if verdict_of_argo_cd(index, each.found).state == "healthy":
            status = each.found["status"]
            assert number(ARGO_CD_HISTORY, status["sync"]["revision"]) >= index, each.name
            assert (status["sync"]["status"], status["health"]["status"]) == ("Synced", "Healthy"), each.name
            assert not each.found.get("operation"), each.name


@pytest.mark.parametrize("index", range(len(ARGO_CD_HISTORY)), ids=[each.digits for each in ARGO_CD_HISTORY])
def test_argo_cd_fails_only_the_version_that_is_degraded(index: int) -> None:
    failed = {each.name for each in argo_cd() if verdict_of_argo_cd(index, each.found).state == "failed"}
    assert failed <= {"5b-broken-image-degraded"}
    assert not failed or index <= number(ARGO_CD_HISTORY, "34f15cf")


@pytest.mark.parametrize("promoted", ARGO_CD_HISTORY, ids=lambda each: each.digits)
def test_argo_cd_misses_no_version(promoted: Promoted) -> None:
    last = next(each for each in argo_cd() if each.name == promoted.until)
    assert verdict_of_argo_cd(ARGO_CD_HISTORY.index(promoted), last.found).state == promoted.state


@pytest.mark.parametrize(
    ("moment", "commit", "words"),
    [
        ("0-no-controller", "0ae6d6e", "not compared its source"),
        ("2-just-after-push", "4d73866", "a revision without"),
        ("3a-operation-pending-operationState-absent", "4d73866", "a revision without"),
        ("3b-op-running", "4d73866", "a sync is under way"),
        ("3c-op-succeeded-but-OutOfSync-stale-Healthy", "4d73866", "it is OutOfSync"),
        ("3d-synced-progressing", "4d73866", "it is Progressing"),
        ("5-broken-image-progressing", "34f15cf", "it is Progressing"),
        ("7-broken-schema", "bbeabc7", "tried again after a failure"),
        ("7b-broken-yaml", "6a1236f", "cannot compare it (ComparisonError)"),
        ("9-autosync-off-after-push", "e7824c0", "has no automated sync"),
        ("10-skip-reconcile-after-push", "e7824c0", "skip-reconcile freezes it"),
    ],
)
def test_a_moment_of_argo_cd_is_told_as_it_is(moment: str, commit: str, words: str) -> None:
    found = next(each for each in argo_cd() if each.name == moment)
    answer = verdict_of_argo_cd(number(ARGO_CD_HISTORY, commit), found.found)
    assert answer.state == "progressing"
    assert words in answer.message
