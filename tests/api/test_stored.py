"""Models of stored objects: validated once, and never taken for those of another object."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from kardinal.api import Bundle
from kardinal.api.stored import StoredModels
from kardinal.objects import JsonObject


def bundle(uid: str = "u", tag: str = "1.0") -> JsonObject:
    artifacts = {"images": [{"reference": f"ghcr.io/acme/app:{tag}"}]}
    return {"metadata": {"name": "b", "namespace": "team", "uid": uid}, "spec": {"artifacts": artifacts}}


def test_an_object_that_has_not_changed_is_validated_once() -> None:
    models, stored = StoredModels(Bundle), bundle()
    assert models.of(stored) is models.of(stored)


def test_another_object_of_the_same_uid_is_validated_anew() -> None:
    models, stored = StoredModels(Bundle), bundle()
    before = models.of(stored)
    changed = {**stored, "spec": bundle(tag="2.0")["spec"]}
    assert models.of(changed).spec != before.spec
    assert models.of(stored).spec == before.spec


def test_objects_without_uid_are_told_apart() -> None:
    models = StoredModels(Bundle)
    one, other = bundle(tag="1.0"), bundle(tag="2.0")
    for each in (one, other):
        del each["metadata"]["uid"]
    assert models.of(one).spec != models.of(other).spec


def test_an_invalid_object_is_refused_each_time() -> None:
    models, wrong = StoredModels(Bundle), bundle() | {"spec": {"artifacts": "none"}}
    for _ in range(2):
        with pytest.raises(ValidationError):
            models.of(wrong)


def test_no_more_than_a_number_of_objects_are_kept() -> None:
    models = StoredModels(Bundle, most=2)
    objects = [bundle(uid) for uid in "abc"]
    first, _, last = (models.of(each) for each in objects)
    assert models.of(objects[2]) is last
    assert models.of(objects[0]) is not first
