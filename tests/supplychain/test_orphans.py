"""Orphans: objects that a blueprint no longer asks for."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kardinal.objects import JsonObject, ResourceType
from kardinal.objects.naming import bounded
from kardinal_supplychain.api.status import OrphanReference, ResourceStatus
from kardinal_supplychain.realize.orphans import ORPHANS_LIMIT, ObjectPlace, Orphan, find_orphans

JOB = ResourceType("batch", "v1", "Job", "jobs")


def obj(name: str, resource: str = "build") -> tuple[ResourceType, JsonObject]:
    labels = {"carto.run/resource-name": bounded(resource)}
    return JOB, {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "labels": labels}}


def reference(name: str, resource: str | None = "build", **fields: Any) -> OrphanReference:
    given = {"apiVersion": "batch/v1", "kind": "Job", "namespace": "team", "name": name, "resource": "jobs.batch"}
    return OrphanReference.model_validate({**given, "uid": f"uid-{name}", "resourceName": resource, **fields})


def status(resource: str, name: str) -> ResourceStatus:
    stamped = reference(name).to_json()
    return ResourceStatus.model_validate({"name": resource, "stampedRef": stamped})


def place(name: str, group: str = "batch") -> ObjectPlace:
    return ObjectPlace(group, "Job", "team", name)


def names(orphans: list[Orphan]) -> list[tuple[str, bool]]:
    return [(orphan.reference.name, orphan.deletable) for orphan in orphans]


def test_live_objects_that_are_not_wanted_are_orphans() -> None:
    owned = [obj("old"), obj("now"), obj("run-1")]
    found = find_orphans(owned, resources=(), listed=(), wanted={place("now"), place("run-1")}, pending=())
    assert found == [Orphan(reference("old"), deletable=True)]


def test_an_object_that_only_the_status_names_is_an_orphan() -> None:
    """Its kind may not be watched any more, because no template stamps it."""
    found = find_orphans([], resources=[status("build", "old")], listed=(), wanted={place("now")}, pending=())
    assert names(found) == [("old", True)]
    assert found[0].reference.resource_name == "build"


def test_a_bundle_is_no_orphan() -> None:
    stamped = reference("shop-1", apiVersion="kardinal.io/v1alpha1", kind="Bundle", resource="bundles.kardinal.io")
    of_bundle = ResourceStatus.model_validate({"name": "bundle", "stampedRef": stamped.to_json()})
    assert find_orphans([], resources=[of_bundle], listed=(), wanted=set(), pending=()) == []


def test_an_object_in_another_version_is_the_same_object() -> None:
    listed = [reference("now", apiVersion="batch/v1beta1")]
    assert find_orphans([], resources=(), listed=listed, wanted={place("now")}, pending=()) == []


def test_objects_of_a_waiting_resource_stay_its_own() -> None:
    """Cartographer deletes it although the resource has nothing else yet."""
    owned = [obj("old")]
    resources = [status("build", "old")]
    assert find_orphans(owned, resources=resources, listed=(), wanted=(), pending=["build"]) == []


def test_an_orphan_is_kept_while_the_resource_of_its_name_waits() -> None:
    found = find_orphans([obj("old")], resources=(), listed=[reference("old")], wanted=(), pending=["build"])
    assert names(found) == [("old", False)]


def test_an_orphan_of_a_resource_that_is_gone_is_deleted_while_others_wait() -> None:
    found = find_orphans([obj("old")], resources=(), listed=(), wanted=(), pending=["deploy"])
    assert names(found) == [("old", True)]


def test_an_orphan_that_is_wanted_again_is_none() -> None:
    assert find_orphans([], resources=(), listed=[reference("old")], wanted={place("old")}, pending=()) == []


def test_a_live_object_is_believed_before_the_status() -> None:
    found = find_orphans([obj("x")], resources=(), listed=[reference("x", uid="gone")], wanted=(), pending=())
    assert [orphan.reference.uid for orphan in found] == ["uid-x"]


def test_a_resource_with_a_long_name_is_found_by_its_label() -> None:
    name = "r" * 200
    assert find_orphans([obj("x", name)], resources=(), listed=(), wanted=(), pending=[name]) == []


def test_a_status_holds_a_number_of_orphans() -> None:
    owned = [obj(f"o{number:03}") for number in range(ORPHANS_LIMIT + 50)]
    assert len(find_orphans(owned, resources=(), listed=(), wanted=(), pending=())) == ORPHANS_LIMIT


NAMES = st.sets(st.sampled_from("abcdef"))


@given(owned=NAMES, earlier=NAMES, listed=NAMES, wanted=NAMES, pending=st.booleans())
def test_nothing_is_lost_and_nothing_wanted_is_an_orphan(
    owned: set[str], earlier: set[str], listed: set[str], wanted: set[str], pending: bool
) -> None:
    found = find_orphans(
        [obj(name) for name in sorted(owned)],
        resources=[status(f"build-{name}", name) for name in sorted(earlier)],
        listed=[reference(name) for name in sorted(listed)],
        wanted={place(name) for name in wanted},
        pending=["build"] if pending else [],
    )
    orphans = {orphan.reference.name for orphan in found}
    assert not orphans & wanted
    assert orphans >= listed - wanted
    if not pending:
        assert orphans == (owned | earlier | listed) - wanted
