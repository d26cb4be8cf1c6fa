"""Make the body and the headers of a request to the endpoint of a custom step (pure)."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from kardinal.promotion.api.signature import IDEMPOTENCY_KEY, SIGNATURE, TIMESTAMP, signature, signed_text
from kardinal.promotion.steps.custom import CustomConfig
from kardinal_agent.endpoints.credentials import EndpointCredentials
from kardinal_agent.steps.base import StepContext

__all__ = ["body_of", "headers_of", "idempotency_key"]


def idempotency_key(context: StepContext) -> str:
    """Return the `Idempotency-Key` of a step of an attempt: the same in every request for it."""
    attempt = context.step.spec.attempt
    return "/".join([context.step.metadata.uid, context.planned.spec.output_name, *([str(attempt)] if attempt else [])])


def body_of(context: StepContext, config: CustomConfig) -> bytes:
    """Return the promotion as JSON."""
    step = context.step
    status = context.status
    described: dict[str, Any] = {
        "step": context.planned.spec.output_name,
        "namespace": step.metadata.namespace,
        "promotion": step.metadata.name,
        "uid": step.metadata.uid,
        "bundle": context.bundle.metadata.name,
        "attempt": status.retry.attempts + 1 if status.retry else 1,
        "outputs": dict(status.outputs or {}),
        "commit": status.commit,
    }
    return orjson.dumps(
        {
            "pipeline": step.spec.pipeline,
            "environment": step.spec.environment,
            "bundle": context.bundle.spec.to_json(),
            "context": described,
            "config": config.to_json(),
        }
    )


def headers_of(
    config: CustomConfig, credentials: EndpointCredentials, *, key: str, body: bytes | None, now: datetime
) -> dict[str, str]:
    """Return the headers of a request; a request without a body gets no signature."""
    headers = {**config.headers, "Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "kardinal"}
    headers[IDEMPOTENCY_KEY] = key
    if credentials.token:
        headers["Authorization"] = f"Bearer {credentials.token}"
    if body is None:
        return headers
    headers["Content-Type"] = "application/json"
    if credentials.hmac_key:
        timestamp = str(int(now.timestamp()))
        text = signed_text(body, timestamp=timestamp.encode(), key=key.encode())
        headers[TIMESTAMP] = timestamp
        headers[SIGNATURE] = f"sha256={signature(credentials.hmac_key.encode(), text)}"
    return headers
