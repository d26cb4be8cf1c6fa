"""Models of stored objects: validated once, and never taken for those of another object."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from kardinal.objects import JsonObject
from kardinal.promotion.api import Bundle
from kardinal.promotion.api.stored import StoredModels


def bundle(uid: str = "u", tag: str = "1.0") -> JsonObject:
    artifacts = {"images": [{"reference": f"ghcr.io/acme/app:{tag}"}]}
    return {"metadata": {"name": "b", "namespace": "team", "uid": uid}, "spec": {"artifacts": artifacts}}


def test_an_object_that_has_not_changed_is_validated_once() -> None:
    models = StoredModels(Bundle)
    stored = bundle()
    assert models.of(stored) is models.of(stored)


def test_a_spec_that_has_not_changed_is_validated_once() -> None:
    models = StoredModels(Bundle)
    before = models.of(bundle())
    after = models.of({**bundle(), "status": {"phase": "Promoting"}})
    assert (before.status.phase, after.status.phase) == (None, "Promoting")
    assert after.spec is before.spec
    assert after == Bundle.model_validate({**bundle(), "status": {"phase": "Promoting"}})


def test_another_object_of_the_same_uid_is_validated_anew() -> None:
    models = StoredModels(Bundle)
    stored = bundle()
    before = models.of(stored)
    changed = {**stored, "spec": bundle(tag="2.0")["spec"]}
    assert models.of(changed).spec != before.spec
    assert models.of(stored).spec == before.spec


def test_objects_without_uid_are_told_apart() -> None:
    models = StoredModels(Bundle)
    one = bundle(tag="1.0")
    other = bundle(tag="2.0")
    for each in (one, other):
        del each["metadata"]["uid"]
    assert models.of(one).spec != models.of(other).spec


def test_an_invalid_object_is_refused_each_time() -> None:
    models = StoredModels(Bundle)
    wrong = bundle() | {"spec": {"artifacts": "none"}}
    for _ in range(2):
        with pytest.raises(ValidationError):
            models.of(wrong)


def test_no_more_than_a_number_of_objects_are_kept() -> None:
    models = StoredModels(Bundle, most=2)
    objects = [bundle(uid) for uid in "abc"]
    first, _, last = (models.of(each) for each in objects)
    assert models.of(objects[2]) is last
    assert models.of(objects[0]) is not first
