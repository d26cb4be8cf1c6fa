"""Whatever a stranger, a CI job or the owner of a Secret sends is answered, and by nothing but the known errors."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from kardinal_controller.http.body import decode, namespace_of
from kardinal_controller.http.credentials import read_credentials
from kardinal_controller.http.problem import ERRORS_SHOWN, ProblemError
from kardinal_controller.http.request import parse_request
from kardinal_controller.http.request_credentials import RequestCredentials
from tests.fuzz.inputs import fuzzed
from tests.support.webhook import body_of

NOW = datetime(2026, 3, 3, 10, 0, tzinfo=UTC)

leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats() | st.text(max_size=80)
flat = st.lists(leaves, max_size=4) | st.dictionaries(st.text(max_size=10), leaves, max_size=4)
documents = leaves | flat | st.lists(flat, max_size=3) | st.dictionaries(st.text(max_size=10), flat, max_size=3)
FIELDS = ("pipeline", "namespace", "type", "artifacts", "provenance", "intent", "labels", "images", "skip", "pipline")
bodies = st.dictionaries(st.sampled_from(FIELDS) | st.text(max_size=20), documents, max_size=6)
headers = st.text(st.characters(codec="utf-8"), max_size=60) | st.binary(max_size=60).map(
    lambda raw: raw.decode("utf-8", "surrogateescape")
)
token_files = st.text(max_size=300) | documents.map(lambda document: orjson.dumps(document, default=str).decode())


def answered(work: Any) -> Any:
    """Return what `work` returns, or None where it refuses in a way that is answered within bounds."""
    try:
        return work()
    except ProblemError as problem:
        response = problem.response()
        assert response.status in (401, 422)
        assert isinstance(response.body, bytes)
        assert len(response.body) <= 16 * 1024
        assert len(orjson.loads(response.body).get("errors", [])) <= ERRORS_SHOWN
        return None


@fuzzed
@given(st.binary(max_size=400))
def test_any_bytes_are_a_body(body: bytes) -> None:
    document = answered(lambda: decode(body))
    if document is not None:
        answered(lambda: namespace_of(document))


@fuzzed
@given(bodies)
def test_any_document_is_a_bundle_or_a_list_of_mistakes(fields: dict[str, Any]) -> None:
    body = orjson.dumps({**body_of(), **fields})
    document = answered(lambda: decode(body))
    namespace = answered(lambda: namespace_of(document)) if document is not None else None
    if namespace is None:
        return
    request = answered(lambda: parse_request(document, namespace=namespace))
    if request is not None:
        assert request.namespace == namespace
        request.bundle().manifest("name")


@fuzzed
@given(headers, headers, headers, headers)
def test_any_headers_authenticate_nothing(authorization: str, signature: str, timestamp: str, key: str) -> None:
    sent = {
        "Authorization": f"Bearer {authorization}",
        "X-Kardinal-Signature-256": f"sha256={signature}",
        "X-Kardinal-Timestamp": timestamp,
        "Idempotency-Key": key,
    }
    delivery = RequestCredentials.read(sent)
    if delivery is not None:
        assert not delivery.is_signed_with(b"key", b"{}")
        delivery.is_current(NOW)
        assert delivery.identity


@fuzzed
@given(token_files)
def test_any_file_of_tokens_is_read_or_has_faults(text: str) -> None:
    data = {"tokens.yaml": base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()}
    found = read_credentials({"metadata": {}, "data": data})
    assert found.tokens == ()
    assert all(fault.startswith("tokens.yaml") for fault in found.faults)
