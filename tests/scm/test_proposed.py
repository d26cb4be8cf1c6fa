"""Which deliveries say that a pull request has come or changed, at every host."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import Any

import pytest

from kardinal.scm import PROVIDERS

SECRET = b"a-secret-of-some-length"
PULL = {"number": 7, "head": {"ref": "fix", "sha": "a" * 40}}
GROUP = {"head_sha": "b" * 40, "head_ref": "refs/heads/gh-readonly-queue/main/pr-7-x", "base_ref": "refs/heads/main"}


def proposed(provider: str, payload: dict[str, Any]) -> bool:
    body = json.dumps(payload).encode()
    digest = hmac.new(SECRET, body, hashlib.sha256).hexdigest()
    headers = {
        "X-Hub-Signature-256": f"sha256={digest}",
        "X-Gitea-Signature": digest,
        "X-Gitlab-Token": SECRET.decode(),
    }
    parse = PROVIDERS[provider].parse_webhook
    assert parse is not None
    return parse(headers, body, SECRET).proposed


def of_merge_request(**attributes: Any) -> dict[str, Any]:
    changes = attributes.pop("changes", {})
    return {"object_kind": "merge_request", "object_attributes": {"iid": 7, **attributes}, "changes": changes}


@pytest.mark.parametrize(
    ("provider", "payload", "expected"),
    [
        ("github", {"action": "opened", "pull_request": PULL}, True),
        ("github", {"action": "synchronize", "pull_request": PULL}, True),
        ("github", {"action": "edited", "pull_request": PULL, "changes": {"base": {"ref": {"from": "x"}}}}, True),
        ("github", {"action": "edited", "pull_request": PULL, "changes": {"title": {"from": "x"}}}, False),
        ("github", {"action": "closed", "pull_request": PULL}, False),
        ("github", {"action": "opened", "pull_request": []}, False),
        ("github", {"action": {}, "pull_request": PULL}, False),
        ("github", {"action": "checks_requested", "merge_group": GROUP}, True),
        ("github", {"action": "checks_requested", "merge_group": []}, False),
        ("gitea", {"action": "synchronized", "pull_request": PULL}, True),
        ("gitea", {"action": "edited", "pull_request": PULL, "changes": {"ref": {"from": "x"}}}, True),
        ("gitea", {"action": "reviewed", "pull_request": PULL}, False),
        ("gitlab", of_merge_request(action="open"), True),
        ("gitlab", of_merge_request(action="update", oldrev="c" * 40), True),
        ("gitlab", of_merge_request(action="update", changes={"target_branch": {"previous": "x"}}), True),
        ("gitlab", of_merge_request(action="update", changes={"title": {"previous": "x"}}), False),
        ("gitlab", of_merge_request(action="merge"), False),
        ("gitlab", {"object_kind": "note", "merge_request": {"iid": 7, "action": "open"}}, False),
    ],
)
def test_a_delivery_says_whether_a_pull_request_has_come_or_changed(
    provider: str, payload: dict[str, Any], *, expected: bool
) -> None:
    assert proposed(provider, payload) is expected
