"""Readers of JSON of others refuse what is costly to decode, and quote nothing of it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from kardinal.scm import WebhookRejected
from kardinal.scm.webhooks import payload_of
from kardinal_agent.endpoints.answers import read_answer
from kardinal_agent.endpoints.client import EndpointReply
from kardinal_agent.endpoints.errors import EndpointFailed
from kardinal_controller.http.body import BodyUnreadable, decode

DEEP = b'{"success": true, "message": "quoted", "a": ' + b"[" * 900 + b"]" * 900 + b"}"
MANY = b'{"success": true, "message": "quoted", "a": [' + b"[]," * 15_000 + b"1]}"


@pytest.mark.parametrize("content", [DEEP, MANY])
def test_a_delivery_of_a_host_that_is_costly_is_refused(content: bytes) -> None:
    with pytest.raises(WebhookRejected, match=r"the delivery is not read: it (is nested|has more)") as rejected:
        payload_of(content)
    assert rejected.value.status == 413


@pytest.mark.parametrize("content", [DEEP, MANY])
def test_a_body_of_the_webhook_that_is_costly_is_refused(content: bytes) -> None:
    with pytest.raises(BodyUnreadable, match="the body is not decoded"):
        decode(content)


@pytest.mark.parametrize("content", [DEEP, MANY])
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_of_an_endpoint_that_is_costly_is_not_quoted(content: bytes, status: int) -> None:
    with pytest.raises(EndpointFailed) as failed:
        read_answer(
            EndpointReply(status, {}, content),
            url="https://steps.example.org/run",
            polled=None,
            secrets=(),
            now=datetime(2026, 3, 3, 10, 0, tzinfo=UTC),
        )
    assert "quoted" not in str(failed.value)
