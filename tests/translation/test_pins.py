"""Environments that write digests: what a Bundle must bring, and which digests a rollback brings back."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api import Bundle
from kardinal.promotion.translation.pins import recorded_digests, restored_pin_problems
from tests.support.objects import environment
from tests.translation.test_supported import refused
from tests.translation.values import bundle, node, pipeline, translated

IMAGE = "ghcr.io/acme/my-app:1.1.0"
THEN, TODAY = (f"sha256:{digit * 64}" for digit in "12")
EARLY = "2026-03-03T10:00:00Z"
LATE = "2026-03-03T12:00:00Z"
PINS = environment("prod", update={"pinDigest": True})


def noted(*artifacts: dict[str, Any], what: Bundle | None = None, **environments: str) -> Bundle:
    """Return a Bundle with what its status says of tags, Verified in environments at a moment."""
    stored = (what or bundle()).to_json()
    entries = {name: {"state": "Verified", "verifiedAt": moment} for name, moment in environments.items()}
    found = [{"reference": IMAGE, "resolvedAt": EARLY, **each} for each in artifacts]
    status = {"environments": entries, **({"artifacts": found} if artifacts else {})}
    return Bundle.model_validate({**stored, "status": status})


def test_a_tag_that_no_registry_was_asked_for_is_refused_where_digests_are_written() -> None:
    (problem,) = refused(way=pipeline("dev", PINS))
    assert (problem.subject, problem.field, problem.reason) == ("Bundle/app-1", "spec.artifacts.images", "NoDigest")
    assert problem.message.startswith(f"{IMAGE} is to be written by digest in prod (update.pinDigest)")
    assert problem.remedy.endswith("--allow-registries ghcr.io")


@pytest.mark.parametrize(
    "what",
    [
        noted({"digest": THEN}),
        noted({"message": "registry ghcr.io answers 503"}),
        bundle(artifacts={"images": [{"reference": IMAGE, "digest": THEN}]}),
        bundle(intent={"target": "dev"}),
    ],
    ids=["a known digest", "one that is waited for", "its own", "another environment"],
)
def test_pin_is_not_refused_where_there_is_or_will_be_a_digest(what: Bundle) -> None:
    assert translated(pipeline("dev", PINS), what)["spec"]["nodes"]


def test_the_field_is_part_of_the_node_and_absent_where_it_is_not_set() -> None:
    graph = translated(pipeline("dev", PINS), noted({"digest": THEN}))
    updates = [node(graph, name)["template"]["spec"]["update"] for name in ("dev", "prod")]
    assert [update.get("pinDigest") for update in updates] == [None, True]


@pytest.mark.parametrize(
    ("restored", "digests"),
    [
        (noted({"digest": THEN, "movedTo": TODAY, "message": "no"}, dev=LATE, prod=LATE), [THEN]),
        (noted({"digest": THEN, "resolvedAt": LATE}, dev=LATE, prod=LATE), [THEN]),
        (noted({"digest": THEN, "resolvedAt": LATE}, dev=EARLY, prod=LATE), []),
        (noted({"message": "no"}, dev=LATE, prod=LATE), []),
        (noted(dev=LATE, prod=LATE), []),
        (noted({"digest": THEN}, dev=LATE), []),
    ],
    ids=["moved since", "known just then", "known after one was Verified", "never known", "not asked", "not Verified"],
)
def test_knowledge_at_verification_is_recorded(restored: Bundle, digests: list[str]) -> None:
    found = recorded_digests(restored, ["dev", "prod"])
    assert [each.digest for each in found] == digests
    assert [(each.moved_to, each.message) for each in found] == [(None, None)] * len(digests)


def back(*artifacts: dict[str, Any], images: list[dict[str, Any]] | None = None) -> Bundle:
    identity = {"name": "app-0", "uid": "uid"}
    rollback = {"environments": ["prod"], "of": identity, "restores": identity}
    brought: dict[str, Any] = {"artifacts": {"images": images}} if images else {}
    return noted(*artifacts, what=bundle("back", intent={"rollback": rollback}, **brought))


RECORDED = noted({"digest": THEN}, prod=LATE)


@pytest.mark.parametrize(
    ("rollback", "restored", "reason"),
    [
        (back({"digest": THEN, "movedTo": TODAY}), RECORDED, None),
        (back({"digest": TODAY}), RECORDED, "OtherDigest"),
        (back({"message": "no"}), RECORDED, "OtherDigest"),
        (back(), RECORDED, "OtherDigest"),
        (back({"digest": TODAY}), noted({"message": "no"}, prod=LATE), "NoDigest"),
        (back({"digest": TODAY}), noted({"digest": THEN, "resolvedAt": LATE}, prod=EARLY), "NoDigest"),
        (back(images=[{"reference": IMAGE, "digest": THEN}]), noted(prod=LATE), None),
        (bundle("no-rollback"), RECORDED, None),
    ],
    ids=[
        "the recorded digest",
        "that of today",
        "none",
        "nothing noted",
        "nothing recorded",
        "recorded after the proof",
        "a digest of its own",
        "no rollback",
    ],
)
def test_a_rollback_brings_back_recorded_digests_and_no_other(
    rollback: Bundle, restored: Bundle, reason: str | None
) -> None:
    environments = pipeline("dev", PINS).spec.environments
    found = list(restored_pin_problems(rollback, restored, environments))
    assert [problem.reason for problem in found] == ([reason] if reason else [])
    assert not list(restored_pin_problems(rollback, restored, pipeline("dev", "prod").spec.environments))
