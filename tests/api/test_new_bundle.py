"""The manifest of a new Bundle, and the names it may get."""

from __future__ import annotations

from datetime import UTC, datetime

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.bundle import Artifacts, Image
from kardinal.promotion.api.new_bundle import NAME_ATTEMPTS, NewBundle

NOW = datetime(2026, 1, 6, 9, 0, tzinfo=UTC)


def new_bundle(**fields: object) -> NewBundle:
    artifacts = Artifacts(images=(Image(reference="ghcr.io/acme/app:1.2.3"),))
    given: dict[str, object] = {"pipeline": "app", "namespace": "team", "artifacts": artifacts, "source": "cli"}
    return NewBundle(**given | fields)  # type: ignore[arg-type]


def test_names_carry_the_version_and_count_up_from_the_second_of_creation() -> None:
    names = [manifest["metadata"]["name"] for manifest in new_bundle().manifests(now=NOW)]
    second = int(NOW.timestamp())
    assert names == [f"app-1-2-3-{second + attempt}" for attempt in range(NAME_ATTEMPTS)]


def test_a_label_cannot_claim_another_pipeline() -> None:
    manifest = new_bundle(labels={"kardinal.io/pipeline": "other", "hotfix": "true"}).manifest("b")
    assert manifest["metadata"]["labels"] == {"kardinal.io/pipeline": "app", "hotfix": "true"}


def test_the_manifest_says_who_made_it_and_is_a_bundle() -> None:
    manifest = new_bundle().manifest("b", annotations={"kardinal.io/idempotency-body": "x"})
    assert manifest["metadata"]["annotations"] == {"kardinal.io/source": "cli", "kardinal.io/idempotency-body": "x"}
    assert "provenance" not in manifest["spec"]
    assert Bundle.model_validate(manifest).spec.artifacts.images[0].reference == "ghcr.io/acme/app:1.2.3"
