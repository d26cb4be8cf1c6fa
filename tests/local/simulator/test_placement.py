"""Which namespace an object goes to: that of the environment, unless it is safe and asked for to be another."""

from __future__ import annotations

import pytest

from kardinal.promotion.api.pipeline import Environment
from kardinal_local.simulator.placement import Placed, RenderedItem, place


def _environment(name: str, *, looks_at: str | None = None) -> Environment:
    health = {"resource": {"namespace": looks_at}} if looks_at else {}
    return Environment.model_validate({"name": name, "health": health})


def _item(name: str = "app", *, namespace: str | None = None, kind: str = "Deployment") -> RenderedItem:
    named = {"namespace": namespace} if namespace else {}
    return RenderedItem.of({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **named}})


def _only(placed: list[Placed]) -> Placed:
    (one,) = placed
    return one


@pytest.mark.parametrize("named", [None, "dev"])
def test_without_another_namespace_it_is_the_environments_own(named: str | None) -> None:
    placed = _only(place([_environment("dev", looks_at="shop")], {"dev": [_item(namespace=named)]}))
    assert (placed.namespace, placed.note) == ("dev", None)


def test_the_namespace_that_the_health_looks_at_is_taken_from_the_manifest() -> None:
    placed = _only(place([_environment("dev", looks_at="shop")], {"dev": [_item(namespace="shop")]}))
    assert (placed.namespace, placed.note) == ("shop", None)


@pytest.mark.parametrize("looks_at", [None, "elsewhere"])
def test_a_namespace_that_the_health_does_not_look_at_is_not(looks_at: str | None) -> None:
    placed = _only(place([_environment("dev", looks_at=looks_at)], {"dev": [_item(namespace="shop")]}))
    assert placed.namespace == "dev"
    assert placed.note == (
        "dev: the kustomization says namespace shop; the simulator applies to dev, "
        "because its health.resource.namespace is not shop"
    )


def test_environments_that_render_the_same_object_there_keep_to_their_own() -> None:
    environments = [_environment("dev", looks_at="shop"), _environment("prod", looks_at="shop")]
    rendered = {name: [_item(namespace="shop"), _item(f"only-{name}", namespace="shop")] for name in ("dev", "prod")}
    placed = place(environments, rendered)
    assert [(each.item.body["metadata"]["name"], each.namespace) for each in placed] == [
        ("app", "dev"),
        ("only-dev", "shop"),
        ("app", "prod"),
        ("only-prod", "shop"),
    ]
    assert placed[0].note is not None
    assert "prod renders Deployment app there as well" in placed[0].note


def test_an_environment_that_is_called_like_the_namespace_has_its_objects_there() -> None:
    environments = [_environment("dev", looks_at="prod"), _environment("prod")]
    placed = place(environments, {"dev": [_item(namespace="prod")], "prod": [_item()]})
    assert [each.namespace for each in placed] == ["dev", "prod"]


def test_another_kind_of_that_name_is_another_object() -> None:
    environments = [_environment("dev", looks_at="shop"), _environment("prod")]
    rendered = {"dev": [_item(namespace="shop")], "prod": [_item(namespace="shop", kind="Service")]}
    assert [each.namespace for each in place(environments, rendered)] == ["shop", "prod"]
