"""The pull request tells a reviewer everything, with real values that cannot break its tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.cli.output import plain_text
from kardinal.edits.images import ImageChange
from kardinal.objects.image_reference import ImageReference
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.evidence import Evidence, GateResult
from kardinal.promotion.policy.soak import healthy_times
from kardinal.promotion.steps.markdown import cell, link, period
from kardinal.promotion.steps.pull_request_text import PullRequestFacts, body, labels_of, title

NOW = datetime(2026, 4, 9, 14, 0, tzinfo=UTC)
DIGEST = "sha256:" + "a1b2c3d4" * 8


def verified(at: str) -> dict[str, Any]:
    return {"state": "Verified", "verifiedAt": at, "healthy": True, "healthySince": at}


def bundle(**spec: Any) -> Bundle:
    return Bundle.model_validate(
        {
            "metadata": {"name": "my-app-1-29-0-x", "namespace": "default"},
            "spec": {
                "artifacts": {"images": [{"name": "my-app", "reference": "ghcr.io/o/app:1.29.0", "digest": DIGEST}]},
                "provenance": {
                    "commitSHA": "abc123def456",
                    "ciRunURL": "https://ci.example.com/runs/12345",
                    "author": "dependabot[bot]",
                },
            }
            | spec,
            "status": {
                "environments": {
                    "staging": verified("2026-04-09T13:15:00Z"),
                    "dev": verified("2026-04-09T12:00:00Z"),
                    "prod": {"state": "Promoting"},
                }
            },
        }
    )


def proposal(**fields: Any) -> PullRequestFacts:
    values: dict[str, Any] = {
        "pipeline": "my-app",
        "environment": "prod",
        "bundle": bundle(),
        "gates": [
            GateResult(name="no-weekend-deploys", scope="org", result="pass", reason="schedule.isWeekend is false"),
            GateResult(name="staging-soak", scope="team", result="fail"),
        ],
        "metrics": {},
        "changes": {
            "environments/prod/kustomization.yaml": [
                ImageChange("app", ImageReference("ghcr.io/o/app", "1.28.0"), ImageReference("ghcr.io/o/app", "1.29.0"))
            ]
        },
        "diff": None,
        "follows": True,
        "merged_by_agent": False,
        "now": NOW,
        "soaks": healthy_times(fields.get("bundle") or bundle()),
    }
    return PullRequestFacts(**values | fields)


def test_the_body_is_that_of_the_design_with_every_table_filled() -> None:
    assert title(proposal()) == "Promote my-app 1.29.0 to prod"
    assert (
        body(proposal())
        == f"""\
## Promotion: my-app 1.29.0 to prod

### Policy Gates
| Gate | Scope | Status | Detail |
| --- | --- | --- | --- |
| no-weekend-deploys | org | PASS | schedule.isWeekend is false |
| staging-soak | team | FAIL | no reason given |

### Artifact
| Field | Value |
| --- | --- |
| Image | ghcr.io/o/app:1.29.0 |
| Digest | {DIGEST} |
| Source Commit | abc123d |
| CI Run | [Build #&#8203;12345](https://ci.example.com/runs/12345) |
| Author | dependabot\\[bot\\] |
| Bundle | my-app-1-29-0-x |

### Upstream Verification
| Environment | Verified | Soak |
| --- | --- | --- |
| dev | 2h ago (2026-04-09 12:00 UTC) | 2h |
| staging | 45m ago (2026-04-09 13:15 UTC) | 45m |

### Changes
- ghcr.io/o/app: 1.28.0 to 1.29.0 in environments/prod/kustomization.yaml

---

Merging lets the promotion go on; closing without merging ends it as Failed.
kardinal keeps this text up to date. A title that you change, and what you write below, stay.
"""
    )


@pytest.mark.parametrize(
    ("told", "row"),
    [
        ({"digest": DIGEST}, f"{DIGEST} when the Bundle started; not pinned: the tag decides"),
        (
            {"digest": DIGEST, "movedTo": f"sha256:{'0' * 64}"},
            f"{DIGEST} when the Bundle started; sha256:{'0' * 64} later; not pinned: the tag decides",
        ),
        (
            {"message": "registry ghcr.io answers 500"},
            "not known (registry ghcr.io answers 500) when the Bundle started; not pinned: the tag decides",
        ),
    ],
    ids=["known", "moved since", "not known"],
)
def test_the_digest_that_a_tag_had_is_told_with_the_tag_deciding(told: dict[str, str], row: str) -> None:
    promoted = bundle(artifacts={"images": [{"reference": "ghcr.io/o/app:1.29.0"}]}).to_json()
    promoted["status"]["artifacts"] = [{"reference": "ghcr.io/o/app:1.29.0", "resolvedAt": NOW.isoformat(), **told}]
    assert f"| Digest | {row} |" in body(proposal(bundle=Bundle.model_validate(promoted)))


def test_a_tag_that_is_written_by_digest_says_so_with_what_it_is_today() -> None:
    other = f"sha256:{'0' * 64}"
    promoted = bundle(artifacts={"images": [{"reference": "ghcr.io/o/app:1.29.0", "digest": DIGEST}]}).to_json()
    known = {"reference": "ghcr.io/o/app:1.29.0", "resolvedAt": NOW.isoformat(), "digest": DIGEST, "movedTo": other}
    promoted["status"]["artifacts"] = [known]
    row = f"{DIGEST} when the Bundle started; {other} later; pinned"
    assert f"| Digest | {row} |" in body(proposal(bundle=Bundle.model_validate(promoted)))
    # A digest that the Bundle names itself is no answer of a registry.
    known["digest"] = other
    assert f"| Digest | {DIGEST} |" in body(proposal(bundle=Bundle.model_validate(promoted)))


def test_unknown_facts_are_stated_as_unknown() -> None:
    text = body(
        proposal(
            gates=[],
            bundle=Bundle.model_validate({"spec": {"artifacts": {"images": [{"reference": "app:1"}]}}}),
            changes={},
            follows=False,
            merged_by_agent=True,
        )
    )
    assert "No policy gate applies to this environment." in text
    assert "| Source Commit | not given |" in text
    assert "| CI Run | not given |" in text
    assert "prod is the first environment of this Bundle." in text
    assert "The branch has these images already." in text
    assert "kardinal merges this pull request by itself" in text


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (None, ImageReference("r/a", "2"), "r/a: newly set to 2"),
        (ImageReference("r/a"), ImageReference("r/a", "2"), "r/a: any version to 2"),
        (ImageReference("r/b", "1"), ImageReference("r/a", "2"), "r/b:1 to r/a:2"),
        (ImageReference("a", "1", DIGEST), ImageReference("a", "1"), f"a: 1&#64;{DIGEST} to 1"),
        (ImageReference("a", "1"), ImageReference("a", None, DIGEST), f"a: 1 to {DIGEST}"),
    ],
)
def test_a_change_names_what_was_and_what_will_be(
    before: ImageReference | None, after: ImageReference, told: str
) -> None:
    assert f"- {told} in f\n" in body(proposal(changes={"f": [ImageChange("x", before, after)]}))


@given(st.text(max_size=400))
def test_no_value_leaves_its_cell(value: str) -> None:
    text = cell(value)
    assert len(text.splitlines()) <= 1
    assert "|" not in text.replace("\\\\", "").replace("\\|", "")
    assert not set("<>@") & set(text)
    row = next(line for line in body(proposal(pipeline=value)).splitlines())
    assert row.startswith("## Promotion:")


@given(st.text(max_size=60))
def test_hostile_provenance_leaves_the_tables_as_they_are(value: str) -> None:
    hostile = bundle(provenance={"commitSHA": value, "ciRunURL": value, "author": f"x{value}"})
    text = body(proposal(gates=[GateResult(name="g", scope="org", result="pass", reason=value)], bundle=hostile))
    rows = [line.replace("\\\\", "").replace("\\|", "") for line in text.split("\n") if line.startswith("|")]
    assert [row.count("|") - 1 for row in rows] == [4] * 3 + [2] * 8 + [3] * 4


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("Fixes #12, closes acme/app#13", "Fixes #&#8203;12, closes acme/app#&#8203;13"),
        ("Resolves GH-12", "Resolves GH-&#8203;12"),
        ("Closes !12 $13 &14", "Closes !&#8203;12 $&#8203;13 &amp;&#8203;14"),
        ("Fixes https://github.com/acme/app/issues/12", "Fixes https:&#8203;//github.com/acme/app/issues/12"),
        ("www.example.com", "www.&#8203;example.com"),
        ("ask @acme/owners or a@example.com", "ask &#64;&#8203;acme/owners or a&#64;&#8203;example.com"),
        ("&#64;alice &#35;12", "&amp;#&#8203;64;alice &amp;#&#8203;35;12"),
        ("app:1@sha256:ab", "app:1&#64;sha256:ab"),
        ("@sha256:ab", "&#64;&#8203;sha256:ab"),
        ("a && b != 1 || !(c) # d", "a &amp;&amp; b != 1 \\|\\| !(c) # d"),
    ],
)
def test_no_value_refers_to_people_issues_or_addresses(value: str, shown: str) -> None:
    assert cell(value) == shown
    # A terminal shows what was written.
    assert plain_text(cell(value)).replace("\\|", "|") == value
    text = body(proposal(bundle=bundle(provenance={"author": value, "ciRunURL": value, "commitSHA": "ab"})))
    assert f"| Author | {shown} |" in text


def test_only_addresses_of_the_web_become_links() -> None:
    assert link("x", "javascript:alert(1)") == "javascript:alert(1)"
    assert link("x", "https://[bad") == "https:&#8203;//\\[bad"
    assert link("x", "https://a/b) | [y](z") == "[x](https://a/b%29%20%7C%20%5By%5D%28z)"


@pytest.mark.parametrize(
    ("duration", "said"),
    [
        (timedelta(seconds=0), "0s"),
        (timedelta(seconds=59), "59s"),
        (timedelta(minutes=45, seconds=20), "45m"),
        (timedelta(hours=2, minutes=5), "2h5m"),
        (timedelta(hours=2), "2h"),
        (timedelta(days=3, hours=4, minutes=9), "3d4h"),
        (timedelta(seconds=-5), "0s"),
    ],
)
def test_a_period_is_said_as_a_person_would(duration: timedelta, said: str) -> None:
    assert period(duration) == said


def test_the_diff_is_folded_and_cannot_end_its_fence() -> None:
    text = body(proposal(diff="-a\n+````\n+</details> @everyone\n"))
    assert "<details>\n<summary>Diff</summary>\n\n`````diff\n-a\n+````\n+</details> @everyone\n`````\n" in text


def test_a_long_diff_leaves_room_for_the_rest_of_the_body() -> None:
    text = body(proposal(diff="+x\n" * 20_000))
    assert len(text) < 65_536
    assert "the rest is left out" in text


def test_an_environment_whose_upstream_is_only_just_verified_is_not_called_the_first() -> None:
    bundle = Bundle.model_validate({"spec": {"artifacts": {"images": [{"reference": "app:1"}]}}})
    assert "were Verified a moment ago" in body(proposal(bundle=bundle))
    assert "are shown when the promotion gets here" in body(proposal(bundle=bundle, gates=None))


def test_charts_are_among_the_artifacts_and_the_changes() -> None:
    charts = [{"repository": "https://charts.example.com", "name": "web|x", "version": "2.0.0"}]
    text = body(proposal(bundle=bundle(artifacts={"charts": charts}), changes={}))
    assert "| Chart | web\\|x 2.0.0 of https:&#8203;//charts.example.com |" in text
    assert "- chart web\\|x: version 2.0.0" in text
    assert title(proposal(bundle=bundle(artifacts={"charts": charts}))) == "Promote my-app 2.0.0 to prod"


@pytest.mark.parametrize(
    ("emergency", "labels"),
    [(False, ("kardinal", "kardinal/rollback")), (True, ("kardinal", "kardinal/rollback", "kardinal/emergency"))],
)
def test_a_rollback_says_what_it_takes_back_and_what_it_brings(emergency: bool, labels: tuple[str, ...]) -> None:
    identities = {"of": {"name": "app-2", "uid": "2"}, "restores": {"name": "app-1", "uid": "1"}}
    rollback = {"environments": ["prod"], "emergency": emergency, **identities}
    back = proposal(bundle=bundle(intent={"rollback": rollback}))
    assert labels_of(back.bundle) == labels
    assert title(back) == "Roll back my-app in prod to 1.29.0"
    assert "## Rollback: my-app in prod to 1.29.0" in body(back)
    assert "Takes back Bundle app-2 with what Bundle app-1 was Verified with" in body(back)
    assert labels_of(bundle()) == ("kardinal",)


def entry(**healthy: Any) -> dict[str, Any]:
    staging = {"state": "Verified", "verifiedAt": "2026-04-09T12:00:00Z", **healthy}
    return {**bundle().model_dump(by_alias=True), "status": {"environments": {"staging": staging}}}


@pytest.mark.parametrize(
    ("healthy", "soak"),
    [
        ({"healthy": True, "healthySince": "2026-04-09T12:00:00Z"}, "2h"),
        ({"healthy": True, "healthySince": "2026-04-09T13:55:00Z"}, "5m"),
        ({"healthy": True, "healthySince": "2026-04-09T13:55:00Z", "healthyFor": "30m"}, "35m"),
        ({"healthy": False, "healthyFor": "30m"}, "30m"),
        ({"healthy": True, "healthySince": "2026-04-09T14:30:00Z"}, "0s, healthy again since 2026-04-09 14:30 UTC"),
    ],
)
def test_the_soak_is_what_gates_count(healthy: dict[str, Any], soak: str) -> None:
    text = body(proposal(bundle=Bundle.model_validate(entry(**healthy))))
    assert f"| staging | 2h ago (2026-04-09 12:00 UTC) | {soak} |" in text


@pytest.mark.parametrize("letter", ["x", "🚀", "`", "@"])
def test_a_body_is_within_what_every_host_takes_whatever_is_in_it(letter: str) -> None:
    long = letter * 400
    gates = [GateResult(name=f"gate-{number}", scope="org", result="pass", reason=long) for number in range(120)]
    changes = {
        f"environments/{number}/{long}": [
            ImageChange("app", ImageReference("ghcr.io/o/app", "1"), ImageReference("ghcr.io/o/app", "2"))
        ]
        for number in range(150)
    }
    for diff in (f"+{letter * 200_000}\n", f"+{long}\n" * 1_000):
        text = body(proposal(gates=gates, changes=changes, diff=diff))
        assert len(text.encode()) <= 65_000
        assert "more lines are left out here" in text
        assert "### Changes" in text
        assert text.endswith("what you write below, stay.\n")
        assert text.count("<details>") == text.count("</details>")
        assert len(body(proposal(gates=gates, changes=changes, diff=diff), room=3_000).encode()) <= 3_000


def test_a_diff_of_fences_does_not_grow_by_its_own_fence() -> None:
    text = body(proposal(diff=f"+{'`' * 30_000}\n+end\n"))
    assert len(text.encode()) <= 65_000


def test_metrics_of_gates_and_of_earlier_environments_are_a_table() -> None:
    promoted = bundle()
    staging = promoted.status.environments["staging"]
    seen = staging.model_copy(update={"evidence": Evidence(metrics={"success-rate": 0.998})})
    environments = {**promoted.status.environments, "staging": seen}
    status = promoted.status.model_copy(update={"environments": environments})
    promoted = promoted.model_copy(update={"status": status})
    text = body(proposal(bundle=promoted, metrics={"latency|p99": 0.25}))
    assert (
        "### Metrics\n| Metric | Seen | Value |\n| --- | --- | --- |\n"
        "| success-rate | staging | 0.998 |\n| latency\\|p99 | gates of prod | 0.25 |\n\n### Changes"
    ) in text
