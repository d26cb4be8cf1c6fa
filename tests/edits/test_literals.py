"""Versions after a literal are replaced in any text, and never those of another image."""

from __future__ import annotations

import pytest

from kardinal.edits.images import PromotedImage
from kardinal.edits.literals import LiteralError, literal_doubt, replace_versions
from kardinal.objects.image_reference import ImageReference

DIGEST = "sha256:" + "ab" * 32


def promoted(reference: str, name: str = "app") -> PromotedImage:
    return PromotedImage(name, ImageReference.parse(reference))


def doubt(text: str, reference: str = "ghcr.io/acme/app:1.1") -> str | None:
    return literal_doubt(text.encode(), [promoted(reference)])


def replaced(text: str, reference: str = "ghcr.io/acme/app:1.1", *, literal: str | None = None) -> str:
    return replace_versions(text.encode(), [promoted(reference)], literal=literal).decode()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('image = "ghcr.io/acme/app:1.0"\r\n', 'image = "ghcr.io/acme/app:1.1"\r\n'),
        (f"ghcr.io/acme/app:1.0@{DIGEST}", "ghcr.io/acme/app:1.1"),
        (f"ghcr.io/acme/app@{DIGEST}\n", "ghcr.io/acme/app:1.1\n"),
        ("oci://ghcr.io/acme/app:1.0", "oci://ghcr.io/acme/app:1.1"),
        ("image:ghcr.io/acme/app:1.0,x", "image:ghcr.io/acme/app:1.1,x"),
        ("ghcr.io/acme/app:1.0 ghcr.io/acme/app:2", "ghcr.io/acme/app:1.1 ghcr.io/acme/app:1.1"),
        ("ghcr.io/acme/app:1.1", "ghcr.io/acme/app:1.1"),
    ],
)
def test_text_after_the_repository_becomes_the_promoted_version(before: str, after: str) -> None:
    assert replaced(before) == after
    with_digest = after.replace(":1.1", f":1.1@{DIGEST}")
    assert replaced(before, f"ghcr.io/acme/app:1.1@{DIGEST}") == with_digest
    assert replaced(before, f"ghcr.io/acme/app@{DIGEST}") == after.replace(":1.1", f"@{DIGEST}")


@pytest.mark.parametrize(
    "other",
    [
        "ghcr.io/acme/app-worker:1",
        "ghcr.io/acme/app/worker:1",
        "ghcr.io/acme/app_x:1",
        "xghcr.io/acme/app:1",
        "mirror.example.com/ghcr.io/acme/app:1",
        "my-ghcr.io/acme/app:1",
        "ghcr.io/acme/app:5000/x",
        "ghcr.io/acme/app",
        "ghcr.io/acme/app:{{ .Values.tag }}",
        "ghcr.io/acme/app:$TAG",
        "ghcr.io/acme/app@sha256:short",
        "GHCR.io/acme/app:1",
    ],
)
def test_another_image_is_never_touched(other: str) -> None:
    assert replaced(f"{other} ghcr.io/acme/app:1 {other}") == f"{other} ghcr.io/acme/app:1.1 {other}"
    assert replaced(other) == other
    assert doubt(other)


def test_bytes_that_are_no_text_stay() -> None:
    content = b"\xff\x00ghcr.io/acme/app:1\x00\xfe"
    assert replace_versions(content, [promoted("ghcr.io/acme/app:2")]) == content.replace(b":1", b":2")


def test_spellings_of_docker_hub_are_one_image() -> None:
    text = "acme/app:1 docker.io/acme/app:1 index.docker.io/acme/app:1 quay.io/acme/app:1 localhost:5000/acme/app:1"
    after = "acme/app:2 docker.io/acme/app:2 index.docker.io/acme/app:2 quay.io/acme/app:1 localhost:5000/acme/app:1"
    assert replaced(text, "docker.io/acme/app:2") == replaced(text, "acme/app:2") == after


def test_a_host_and_its_port_are_no_image_unless_the_bundle_writes_the_image_so() -> None:
    text = "redis:6379 library/redis:6 docker.io/redis:6"
    assert replaced(text, "docker.io/library/redis:7") == "redis:6379 library/redis:7 docker.io/redis:7"
    assert replaced(text, "redis:7") == "redis:7 library/redis:7 docker.io/redis:7"


def test_several_images_are_replaced_and_one_is_enough() -> None:
    images = [promoted("ghcr.io/acme/app:2"), promoted("ghcr.io/acme/web:3", "web")]
    assert (
        replace_versions(b"ghcr.io/acme/app:1 ghcr.io/acme/web:1", images) == b"ghcr.io/acme/app:2 ghcr.io/acme/web:3"
    )
    assert replace_versions(b"ghcr.io/acme/web:1", images) == b"ghcr.io/acme/web:3"


def test_a_literal_stands_in_for_the_repository() -> None:
    assert replaced("app_image: app:1.0\nother: xapp:1\n", literal="app") == "app_image: app:1.1\nother: xapp:1\n"
    assert replaced('tag = "v:1.0"', literal='"v') == 'tag = "v:1.1"'
    assert replaced("a+b:1 aab:1", literal="a+b") == "a+b:1.1 aab:1"


def test_nothing_is_looked_for_without_an_image() -> None:
    assert literal_doubt(b"x", []) is None
    assert literal_doubt(b"x", [], literal="y") is None
    assert replace_versions(b"y:1", [], literal="y") == b"y:1"


def test_a_literal_stands_for_one_image_only() -> None:
    with pytest.raises(LiteralError, match="2 are promoted"):
        replace_versions(b"x:1", [promoted("a/b:1"), promoted("a/c:1")], literal="x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x ghcr.io/acme/ap:1 quay.io/b/c:2", "the nearest images in it are ghcr.io/acme/ap:1, quay.io/b/c:2"),
        ("ghcr.io/acme/app:${TAG}", "holds 'ghcr.io/acme/app' without a version after it"),
        ("", "does not hold 'ghcr.io/acme/app' with a version, nor any other image"),
        ("A/../b:1 a/..:2", "nor any other image"),
    ],
)
def test_nearest_images_of_a_text_without_the_image_are_named(text: str, message: str) -> None:
    assert message in (doubt(text) or "")
    assert replaced(text) == text


@pytest.mark.parametrize("part", ["a:", "a/", "ghcr.io/acme/app", "a.", "x/y:1", "@sha256:"])
def test_a_large_text_is_read_in_one_go(part: str) -> None:
    assert doubt(part * ((1 << 20) // len(part)))
