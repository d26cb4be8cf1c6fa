"""Deliveries: the signature over the bytes first, then what they are about; nothing of them is believed beyond that."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.scm import PROVIDERS, Delivery, WebhookRejected
from tests.support.secret_values import secret_value

SECRET = secret_value("webhook").encode()
PULL = {
    "action": "closed",
    "number": 7,
    "pull_request": {"number": 7, "head": {"ref": "kardinal/app-1/prod", "sha": "a" * 40}},
    "repository": {"clone_url": "https://git.example.org/acme/config.git"},
}
HEADERS = {"gitea": "X-Gitea-Signature", "forgejo": "X-Forgejo-Signature"}

Parse = Callable[[Mapping[str, str], bytes, bytes], Delivery]


def signature(body: bytes, secret: bytes = SECRET) -> str:
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


@pytest.fixture(params=sorted(HEADERS))
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def parse(name: str) -> Parse:
    found = PROVIDERS[name].parse_webhook
    assert found is not None
    return found


def delivered(name: str, payload: Any) -> tuple[dict[str, str], bytes]:
    body = json.dumps(payload).encode()
    event = {"X-Gitea-Event": "pull_request", "X-Forgejo-Event": "pull_request"}
    return {HEADERS[name]: signature(body), **event}, body


def test_a_delivery_names_the_pull_request_its_branch_and_its_commit(name: str, parse: Parse) -> None:
    headers, body = delivered(name, PULL)
    assert parse(headers, body, SECRET) == Delivery(
        event="pull_request",
        repository="https://git.example.org/acme/config.git",
        number=7,
        branch="kardinal/app-1/prod",
        commit="a" * 40,
    )
    lowered = {key.lower(): value for key, value in headers.items()}
    assert parse(lowered, body, SECRET).number == 7


def test_each_host_has_a_signature_of_its_own_name(name: str, parse: Parse) -> None:
    other = next(one for one in HEADERS if one != name)
    headers, body = delivered(other, PULL)
    with pytest.raises(WebhookRejected):
        parse(headers, body, SECRET)


@pytest.mark.parametrize(
    "sent",
    [
        "",
        "sha256=",
        "0" * 64,
        "é" * 64,
        "\udcff" * 64,
        "\uff10" * 64,
        signature(b"another body"),
        signature(b"{}") + "0",
        signature(b"{}")[:-1],
    ],
)
def test_a_signature_that_is_not_right_is_refused_whatever_its_letters(name: str, parse: Parse, sent: str) -> None:
    with pytest.raises(WebhookRejected) as rejected:
        parse({HEADERS[name]: sent}, b"{}", SECRET)
    assert rejected.value.status == 401


def test_a_delivery_without_a_signature_is_refused_before_its_body_is_read(parse: Parse) -> None:
    with pytest.raises(WebhookRejected) as rejected:
        parse({}, b"no document", SECRET)
    assert rejected.value.status == 401


def test_without_a_secret_nothing_is_accepted(name: str, parse: Parse) -> None:
    with pytest.raises(WebhookRejected, match="no webhook secret is set") as rejected:
        parse({HEADERS[name]: signature(b"{}", b"")}, b"{}", b"")
    assert rejected.value.status == 401


def test_a_secret_of_any_bytes_signs(name: str, parse: Parse) -> None:
    secret = b"\xff\x00 sch\xc3\xb6n"
    assert parse({HEADERS[name]: signature(b"{}", secret)}, b"{}", secret) == Delivery(event="")


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b'{"a": "\\ud800"}', b"payload=%7B%7D"])
def test_a_signed_body_that_is_no_object_is_refused_as_such(name: str, parse: Parse, body: bytes) -> None:
    with pytest.raises(WebhookRejected, match="application/json") as rejected:
        parse({HEADERS[name]: signature(body)}, body, SECRET)
    assert rejected.value.status == 400


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        ({"ref": "refs/heads/main", "after": "b" * 40}, Delivery("push", branch="main", commit="b" * 40)),
        ({"ref": "refs/tags/v1"}, Delivery("push")),
        ({"sha": "c" * 40, "context": "ci", "state": "pending"}, Delivery("push", commit="c" * 40)),
        (
            {"sha": "c" * 40, "context": "ci", "state": "failure", "branches": [{"name": "a"}, 1, {"name": "b"}]},
            Delivery("push", commit="c" * 40, checked=("c" * 40, "a", "b")),
        ),
        ({"action": "created", "check_run": {"head_sha": "d" * 40}}, Delivery("push")),
        ({"action": "completed", "check_run": {"head_sha": "d" * 40}}, Delivery("push", checked=("d" * 40,))),
        ({"action": "completed", "workflow_job": {"head_branch": "a"}}, Delivery("push", checked=("a",))),
        (
            {"action": "success", "run": {"commit_sha": "e" * 40, "prettyref": "#7"}},
            Delivery("push", checked=("e" * 40, "#7")),
        ),
        ({"issue": {"number": 9, "pull_request": {"merged": False}}}, Delivery("push", number=9)),
        ({"issue": {"number": 9}}, Delivery("push")),
        ({"number": 7}, Delivery("push")),
        ({"pull_request": {"number": True}}, Delivery("push")),
        ({"pull_request": {"number": 2**60}}, Delivery("push")),
        ({"pull_request": {"head": {"ref": "a\nb", "sha": "\x00"}}}, Delivery("push")),
        ({"repository": {"clone_url": "x" * 3000}}, Delivery("push")),
    ],
)
def test_other_events_say_what_they_are_about(payload: Any, expected: Delivery) -> None:
    body = json.dumps(payload).encode()
    parse = PROVIDERS["gitea"].parse_webhook
    assert parse is not None
    assert parse({"X-Gitea-Signature": signature(body), "X-Gitea-Event": "push"}, body, SECRET) == expected


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20)
    | st.sampled_from(["a\nb", "x" * 300, "x" * 3_000]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)


@given(
    payload=st.fixed_dictionaries(
        {},
        optional={
            "number": VALUES,
            "pull_request": VALUES
            | st.fixed_dictionaries({"number": VALUES, "head": VALUES | st.fixed_dictionaries({"ref": VALUES})}),
            "issue": VALUES | st.fixed_dictionaries({"number": VALUES, "pull_request": VALUES}),
            "repository": VALUES | st.fixed_dictionaries({"clone_url": VALUES}),
            "ref": VALUES,
            "sha": VALUES,
            "context": VALUES,
            "state": VALUES,
            "branches": VALUES | st.lists(VALUES | st.fixed_dictionaries({"name": VALUES}), max_size=12),
            "action": st.sampled_from(["opened", "completed"]),
            "check_run": VALUES | st.fixed_dictionaries({"head_sha": VALUES, "check_suite": VALUES}),
            "run": VALUES | st.fixed_dictionaries({"commit_sha": VALUES}),
        },
    )
)
def test_a_signed_payload_of_any_shape_is_a_delivery_of_bounded_fields(payload: Any) -> None:
    headers, body = delivered("gitea", payload)
    parse = PROVIDERS["gitea"].parse_webhook
    assert parse is not None
    found = parse(headers, body, SECRET)
    assert found.number is None or 0 < found.number < 2**53
    assert not isinstance(found.number, bool)
    assert all(isinstance(text, str) for text in (found.branch, found.commit, found.repository))
    assert len(found.checked) <= 17
    assert all(isinstance(name, str) and len(name) <= 255 for name in found.checked)
    assert (len(found.branch) <= 255, len(found.commit) <= 64, len(found.repository) <= 2048) == (True, True, True)
