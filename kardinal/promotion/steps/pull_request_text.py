"""The text of a pull request: title, labels, and the body by which a reviewer decides.

The body answers four questions in four tables: which gates let this promotion through and with which values, which
artifacts are promoted, in which environments they were verified and for how long, and which image replaces which. A
fifth has metrics, if there are any. All
values are read at the time of writing; an empty table is replaced by a sentence with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Protocol

from kardinal.edits.images import ImageChange
from kardinal.objects.image_reference import ImageReference
from kardinal.objects.text_limits import BODY_LIMIT, head_of, size, within
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import EnvironmentStatus, Provenance
from kardinal.promotion.api.evidence import GateResult
from kardinal.promotion.api.image import bundle_title, promoted_images
from kardinal.promotion.api.resolved import resolved_image
from kardinal.promotion.steps.markdown import ago, cell, link, moment, period, table
from kardinal.tree.git_names import PULL_REQUEST_LABEL

__all__ = ["PullRequestFacts", "body", "labels_of", "title", "waiting_message"]

_ROLLBACK = f"{PULL_REQUEST_LABEL}/rollback"
_EMERGENCY = f"{PULL_REQUEST_LABEL}/emergency"
_TITLE_LIMIT = 200
_SHORT_COMMIT = 7
_DIFF_LIMIT = 40_000
"""The maximum size of the diff in the body, in bytes."""
_NO_DIFF = "\n\nThe diff is left out here; `kardinal plan` shows it"
_SECTION_LIMIT = 12_000
"""The maximum size of each section before the diff, in bytes."""
ROOM = BODY_LIMIT - 1_000
"""The size in bytes of a body without text of people; the rest of `BODY_LIMIT` is for kardinal's marks."""


class Healthy(Protocol):
    """The time for which an environment has been healthy, as gates count it."""

    @property
    def since(self) -> datetime | None: ...

    def at(self, now: datetime) -> timedelta: ...


@dataclass(frozen=True)
class PullRequestFacts:
    """The values from which the text of a pull request is made."""

    pipeline: str
    environment: str
    bundle: Bundle
    gates: Sequence[GateResult] | None
    """None before the gates are evaluated."""
    metrics: Mapping[str, float]
    """The values of metrics that the gates have read, by the name of the check."""
    changes: Mapping[str, Sequence[ImageChange]]
    """The image changes by file."""
    diff: str | None
    follows: bool
    """Whether the environment has upstreams."""
    merged_by_agent: bool
    now: datetime
    soaks: Mapping[str, Healthy]
    """The healthy time of each environment in which the Bundle is Verified."""


def waiting_message(url: str) -> str:
    """Return the message of a promotion that only waits for the merge of its pull request."""
    return f"waits for {url} to be merged"


def labels_of(bundle: Bundle) -> tuple[str, ...]:
    """Return the labels of the pull requests of a Bundle."""
    rollback = bundle.spec.intent.rollback
    if rollback is None:
        return (PULL_REQUEST_LABEL,)
    return (PULL_REQUEST_LABEL, _ROLLBACK, _EMERGENCY) if rollback.emergency else (PULL_REQUEST_LABEL, _ROLLBACK)


def title(proposal: PullRequestFacts) -> str:
    rollback = proposal.bundle.spec.intent.rollback
    return f"{'Promote' if rollback is None else 'Roll back'} {_subject(proposal)}"[:_TITLE_LIMIT]


def body(proposal: PullRequestFacts, *, room: int = ROOM) -> str:
    """Return the body in at most `room` bytes; long sections and the diff are cut."""
    rollback = proposal.bundle.spec.intent.rollback
    sections = [
        (("Promotion: " if rollback is None else "Rollback: ") + cell(_subject(proposal)), None),
        ("Policy Gates", _gates(proposal.gates)),
        ("Artifact", _artifact(proposal.bundle)),
        ("Upstream Verification", _upstream(proposal)),
        *([("Metrics", metrics)] if (metrics := _metrics(proposal)) else []),
        ("Changes", _changes(proposal)),
    ]
    parts = []
    for index, (heading, content) in enumerate(sections):
        parts.append(f"{'###' if index else '##'} {heading}")
        if content is not None:
            parts[-1] += f"\n{within(content, _SECTION_LIMIT)}"
    ending = f"\n\n---\n\n{_ending(proposal)}\n"
    text = within("\n\n".join(parts), room - size(ending))
    return text + _diff(proposal.diff, room=room - size(text) - size(ending)) + ending


def _subject(proposal: PullRequestFacts) -> str:
    version = bundle_title(proposal.bundle.spec.artifacts)
    if proposal.bundle.spec.intent.rollback is not None:
        return f"{proposal.pipeline} in {proposal.environment} to {version}"
    return " ".join(part for part in (proposal.pipeline, version, "to", proposal.environment) if part)


def _gates(gates: Sequence[GateResult] | None) -> str:
    if gates is None:
        return "The gates are evaluated when the promotion gets here."
    if not gates:
        return "No policy gate applies to this environment."
    rows = [
        (cell(gate.name), cell(gate.scope or "unknown"), gate.result.upper(), cell(gate.reason or "no reason given"))
        for gate in gates
    ]
    return table(("Gate", "Scope", "Status", "Detail"), rows)


def _metrics(proposal: PullRequestFacts) -> str:
    """Return the metrics by which earlier environments were Verified, and those that the gates have read."""
    earlier = proposal.bundle.status.environments.items() if proposal.bundle.spec.intent.rollback is None else ()
    rows = [
        (cell(name), cell(environment), f"{value:g}")
        for environment, status in earlier
        if environment != proposal.environment and status.evidence is not None
        for name, value in status.evidence.metrics.items()
    ]
    here = f"gates of {cell(proposal.environment)}"
    rows += [(cell(name), here, f"{value:g}") for name, value in proposal.metrics.items()]
    return table(("Metric", "Seen", "Value"), rows) if rows else ""


def _artifact(bundle: Bundle) -> str:
    rows: list[tuple[str, str]] = []
    for image in promoted_images(bundle.spec.artifacts):
        tag = f":{image.tag}" if image.tag else ""
        rows.append(("Image", cell(image.repository + tag)))
        rows.append(("Digest", cell(_digest(image, bundle))))
    charts = bundle.spec.artifacts.charts
    rows += [("Chart", cell(f"{chart.name} {chart.version} of {chart.repository}")) for chart in charts]
    commit = bundle.spec.artifacts.git_commit
    if commit is not None:
        rows.append(("Configuration", cell(f"{commit.repository} at {commit.sha[:_SHORT_COMMIT]}")))
        rows.append(("Message", cell(commit.message.partition("\n")[0] or "not given")))
    rows += _provenance(bundle.spec.provenance or Provenance())
    rows.append(("Bundle", cell(bundle.metadata.name)))
    return table(("Field", "Value"), rows)


def _digest(image: ImageReference, bundle: Bundle) -> str:
    """Return by which digest an image is written, or that its tag decides, with the digests that its tag had."""
    found = resolved_image(replace(image, digest=None), bundle.status.artifacts)
    if found is None or (image.digest and image.digest != found.digest):
        return image.digest or "not pinned: the tag decides"
    told = found.digest or f"not known ({found.message})"
    created = bundle.metadata.creation_timestamp
    restored = bundle.spec.intent.rollback is not None and created is not None and found.resolved_at < created
    when = "of what it brings back" if restored else "when the Bundle started"
    moved = f"; {found.moved_to} later" if found.moved_to else ""
    return f"{told} {when}{moved}; {'pinned' if image.digest else 'not pinned: the tag decides'}"


def _provenance(provenance: Provenance) -> Iterable[tuple[str, str]]:
    commit = provenance.commit_sha
    yield "Source Commit", cell(commit[:_SHORT_COMMIT]) if commit else "not given"
    yield (
        "CI Run",
        link(_run_name(provenance.ci_run_url), provenance.ci_run_url) if provenance.ci_run_url else "not given",
    )
    if provenance.author:
        yield "Author", cell(provenance.author)


def _run_name(url: str) -> str:
    last = url.rstrip("/").rpartition("/")[2]
    return f"Build #{last}" if last.isdecimal() else "CI run"


def _upstream(proposal: PullRequestFacts) -> str:
    if (rollback := proposal.bundle.spec.intent.rollback) is not None:
        return (
            f"Takes back Bundle {cell(rollback.of.name)} with what Bundle {cell(rollback.restores.name)} was Verified "
            "with in this environment, where the evidence of that is."
        )
    verified = [
        (name, status, status.verified_at)
        for name, status in proposal.bundle.status.environments.items()
        if name != proposal.environment and status.verified_at is not None
    ]
    if not verified:
        return _no_upstream(proposal)
    rows = [
        (cell(name), _verification(status, at, now=proposal.now), _soak(proposal, name))
        for name, status, at in sorted(verified, key=lambda row: row[2])
    ]
    return table(("Environment", "Verified", "Soak"), rows)


def _soak(proposal: PullRequestFacts, environment: str) -> str:
    """Return for how long the environment had been healthy when the promotion began, as gates count it."""
    healthy = proposal.soaks.get(environment)
    if healthy is None:
        return "none"
    counted = period(healthy.at(proposal.now))
    anew = healthy.since is not None and healthy.since > proposal.now
    return f"{counted}, healthy again since {moment(healthy.since)}" if anew and healthy.since else counted


def _no_upstream(proposal: PullRequestFacts) -> str:
    if proposal.gates is None:
        return "The environments before this one are shown when the promotion gets here."
    if proposal.follows:
        return "The environments before this one were Verified a moment ago."
    return f"{cell(proposal.environment)} is the first environment of this Bundle."


def _verification(status: EnvironmentStatus, at: datetime, *, now: datetime) -> str:
    return ago(at, now=now) if status.state == "Verified" else f"{cell(status.state)} since {ago(at, now=now)}"


def _changes(proposal: PullRequestFacts) -> str:
    changes = proposal.changes
    artifacts = proposal.bundle.spec.artifacts
    lines = [f"- {_change(change)} in {cell(path)}" for path, in_file in changes.items() for change in in_file]
    if artifacts.images and not lines:
        lines.append("The branch has these images already.")
    lines += [f"- chart {cell(chart.name)}: version {cell(chart.version)}" for chart in artifacts.charts]
    if artifacts.git_commit is not None:
        lines.append(f"- files that commit {cell(artifacts.git_commit.sha[:_SHORT_COMMIT])} changes: see the diff")
    return "\n".join(lines)


def _change(change: ImageChange) -> str:
    before = change.before
    after = change.after
    if before is None:
        return f"{cell(after.repository)}: newly set to {cell(_full(after))}"
    if not before.same_repository(after):
        return f"{cell(before)} to {cell(after)}"
    told = (before.tag, after.tag) if before.tag != after.tag and before.tag and after.tag else None
    old, new = told or (_full(before), _full(after))
    return f"{cell(after.repository)}: {cell(old)} to {cell(new)}"


def _full(image: ImageReference) -> str:
    return "@".join(part for part in (image.tag, image.digest) if part) or "any version"


def _diff(diff: str | None, *, room: int) -> str:
    """Return the diff, folded, in at most `room` bytes. The fence is longer than every fence in the diff."""
    limit = min(_DIFF_LIMIT, room)
    while diff and limit > 0:
        kept = head_of(diff, limit)
        whole = len(kept) == len(diff)
        kept = kept.rstrip("\n") if whole else kept.rpartition("\n")[0]
        cut_off = "" if whole else "\n… the rest is left out; `kardinal plan` shows all of it"
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", kept)), default=0))
        folded = f"\n\n<details>\n<summary>Diff</summary>\n\n{fence}diff\n{kept}\n{fence}\n{cut_off}\n</details>"
        if size(folded) <= room:
            return folded
        limit = min(limit, size(kept)) - max(size(folded) - room, 100)
    return _NO_DIFF if diff and size(_NO_DIFF) <= room else ""


def _ending(proposal: PullRequestFacts) -> str:
    if proposal.merged_by_agent:
        end = "kardinal merges this pull request by itself, unless it is a draft; it is here for the record."
    else:
        end = "Merging lets the promotion go on; closing without merging ends it as Failed."
    return f"{end}\nkardinal keeps this text up to date. A title that you change, and what you write below, stay."
