"""Deliveries of hosts: check the signature over the raw bytes, then parse the subject.

A delivery is only a hint: it says which pull request, branch or commit should be read again. The state itself is read
from the host.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kardinal.bounded import ForeignBytes, JsonLimits, NotJson, OverLimit, decode, mebibytes
from kardinal.scm.errors import WebhookRejected

__all__ = ["Delivery", "check_hmac", "check_token", "event_of", "header_of", "payload_of"]

MAX_BRANCH = 255
MAX_BRANCHES = 10
"""The most branches that GitHub names for the commit of a status."""
_DELIVERY = JsonLimits(size=1 << 20, containers=10_000, pieces=50_000)
"""A push of 2,048 commits has about 6,000 lists and objects, and is the largest delivery that is useful."""

FOREIGN = ForeignBytes(
    "deliveries of Git hosts",
    of="Git host",
    size=mebibytes(_DELIVERY.size),
    unpacked="a compressed body is refused",
    structure=_DELIVERY.structure,
    time="30 s",
    held="4 MiB of bodies over 64 KiB, one of less for each connection",
    decoded="after its signature was right, on a thread from 64 KiB",
    tests=(
        "bounded/test_readers.py::test_a_delivery_of_a_host_that_is_costly_is_refused",
        "attacks/test_connections.py::test_large_bodies_that_do_not_end_keep_no_delivery_waiting",
    ),
)


@dataclass(frozen=True, slots=True)
class Delivery:
    """The subject of a delivery; an event without any of these subjects, such as a ping, has only `event`.

    `branch`: the head of the pull request, or the pushed branch. `repository`: the URL of the repository as the host
    names it, such as `https://github.com/acme/deploy`, which may have another host name than in the Pipeline.
    `proposed`: a pull request was opened, its commits or its base have changed, or a merge queue asks about a commit.
    `checked`: the commit of a finished check, and its branches if the host names them.
    """

    event: str
    repository: str = ""
    number: int | None = None
    branch: str = ""
    commit: str = ""
    proposed: bool = False
    checked: tuple[str, ...] = ()


_PROPOSED = frozenset({"opened", "reopened", "synchronize", "synchronized"})
"""Actions of GitHub, Gitea and Forgejo. A new base is an edit: of `base` at GitHub, of `ref` at the others."""
_CHECKS = ("check_run", "check_suite", "workflow_run", "workflow_job")
"""Fields of GitHub and Gitea that contain a check; the `action` says whether it has finished."""


def header_of(headers: Mapping[str, str], name: str) -> str:
    """Return a header regardless of case; empty if it is missing."""
    lowered = name.lower()
    return next((value for key, value in headers.items() if key.lower() == lowered), "")


def check_hmac(signature: str, body: bytes, secret: bytes) -> None:
    """Raise `WebhookRejected` unless `signature` is the hexadecimal HMAC-SHA256 of the body with the secret."""
    _check(signature, hmac.new(secret, body, hashlib.sha256).hexdigest(), secret)


def check_token(token: str, secret: bytes) -> None:
    """Raise `WebhookRejected` unless the host sent the secret itself."""
    _check(token, secret.decode(errors="surrogateescape"), secret)


def payload_of(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a delivery after its signature was checked."""
    try:
        value = decode(body, _DELIVERY)
    except OverLimit as error:
        raise WebhookRejected(f"the delivery is not read: {error}", status=413) from None
    except NotJson:
        value = None
    if not isinstance(value, dict):
        raise WebhookRejected(
            "the delivery is no JSON object", status=400, remedy="Set the webhook's content type to application/json"
        )
    return value


def event_of(payload: Mapping[str, Any], event: str) -> Delivery:
    """Return the subject of a delivery, from the fields that GitHub, Gitea and Forgejo share."""
    pull_request = _mapping(payload.get("pull_request"))
    issue = _mapping(payload.get("issue"))
    if not pull_request and issue.get("pull_request"):
        pull_request = {"number": issue.get("number")}
    number = pull_request.get("number", payload.get("number") if pull_request else None)
    head = _mapping(pull_request.get("head"))
    action = _text(payload.get("action"), 64)
    edits = _mapping(payload.get("changes"))
    retargeted = action == "edited" and bool(edits.get("base") or edits.get("ref"))
    return Delivery(
        event=event[:64],
        repository=_text(_mapping(payload.get("repository")).get("clone_url"), 2048),
        number=number if type(number) is int and 0 < number < 2**53 else None,
        branch=_text(head.get("ref") or _pushed(payload.get("ref")), MAX_BRANCH),
        commit=_text(head.get("sha") or payload.get("sha") or payload.get("after"), 64),
        proposed=bool(pull_request) and (action in _PROPOSED or retargeted),
        checked=tuple(text for name in _checked(payload) if (text := _text(name, MAX_BRANCH))),
    )


def _checked(payload: Mapping[str, Any]) -> Iterator[object]:
    """Yield commit and branches of a finished check.

    A status is `{"context": "ci", "state": "success", "sha": …}`, at GitHub with `branches`; a check is `{"action":
    "completed", "check_run": {"head_sha": …}}`; Forgejo sends `{"run": {"commit_sha": …}}`.
    """
    if payload.get("context") and payload.get("state") != "pending":
        yield payload.get("sha")
        branches = payload.get("branches")
        for branch in branches[:MAX_BRANCHES] if isinstance(branches, list) else ():
            yield _mapping(branch).get("name")
    if payload.get("action") == "completed":
        for check in (_mapping(payload.get(name)) for name in _CHECKS):
            yield check.get("head_sha")
            yield (_mapping(check.get("check_suite")) or check).get("head_branch")
    run = _mapping(payload.get("run"))
    yield run.get("commit_sha")
    yield run.get("prettyref")


def _pushed(ref: object) -> str:
    return ref.removeprefix("refs/heads/") if isinstance(ref, str) and ref.startswith("refs/heads/") else ""


def _check(sent: str, expected: str, secret: bytes) -> None:
    if not secret:
        raise WebhookRejected(
            "no webhook secret is set", status=401, remedy="Name a Secret with the key webhookSecret in the Pipeline"
        )
    # Compared as bytes, because non-ASCII text cannot be compared in constant time.
    if not hmac.compare_digest(sent.encode(errors="surrogateescape"), expected.encode(errors="surrogateescape")):
        raise WebhookRejected(
            "the signature is missing or wrong", status=401, remedy="Give the webhook at the host the same secret"
        )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object, most: int) -> str:
    return value if isinstance(value, str) and len(value) <= most and value.isprintable() else ""
