"""Images are set among the values of a chart however it writes them, or the promotion is refused for a known reason."""

from __future__ import annotations

import textwrap

import pytest

from kardinal.edits.helm.helm_values import Part, ValuePath, set_image_values, value_doubts
from kardinal.edits.images import PromotedImage
from kardinal.edits.yaml.document_path import parse_path
from kardinal.edits.yaml.document_walk import DocumentError
from kardinal.objects.image_reference import ImageReference

DIGEST = "sha256:" + "ab" * 32
OLD = "sha256:" + "cd" * 32

Path = tuple[str, Part] | tuple[str, Part, str]


def promoted(reference: str = "ghcr.io/acme/app:1.1", name: str = "my-app") -> PromotedImage:
    return PromotedImage(name, ImageReference.parse(reference))


def edited(text: str, *images: PromotedImage, paths: tuple[Path, ...] = ()) -> str:
    places = [ValuePath(parse_path(path), *rest) for path, *rest in paths]
    return set_image_values(textwrap.dedent(text).encode(), images or (promoted(),), places).decode()


def refusal(text: str, *images: PromotedImage, paths: tuple[Path, ...] = ()) -> str:
    with pytest.raises(DocumentError) as caught:
        edited(text, *images, paths=paths)
    return str(caught.value)


def doubts(text: str, *images: PromotedImage, paths: tuple[Path, ...] = ()) -> list[str]:
    places = [ValuePath(parse_path(path), *rest) for path, *rest in paths]
    return value_doubts(textwrap.dedent(text).encode(), images or (promoted(),), places)


CHART = """\
# Default values for app.
replicaCount: 1

image:
  repository: ghcr.io/acme/app
  pullPolicy: IfNotPresent
  # Overrides the image tag whose default is the chart appVersion.
  tag: "1.0"   # set by kardinal
"""


def test_only_the_tag_of_the_usual_chart_changes() -> None:
    assert edited(CHART) == CHART.replace('"1.0"', '"1.1"')


def test_line_endings_stay() -> None:
    before = CHART.replace("\n", "\r\n").encode()
    assert set_image_values(before, [promoted()], []) == before.replace(b'"1.0"', b'"1.1"')


@pytest.mark.parametrize(
    ("before", "after", "reference"),
    [
        (f"tag: 1.0, digest: {OLD}", f"tag: '1.1', digest: {DIGEST}", f"ghcr.io/acme/app:1.1@{DIGEST}"),
        (f"tag: 1.0, digest: {OLD}", f"tag: 1.0, digest: {DIGEST}", f"ghcr.io/acme/app@{DIGEST}"),
        ("tag: 1.0, digest: ''", f"tag: '1.1', digest: '{DIGEST}'", f"ghcr.io/acme/app:1.1@{DIGEST}"),
        (f"tag: 1.0, digest: {OLD}", "tag: '1.1', digest: ''", "ghcr.io/acme/app:1.1"),
        ("tag: 1.0, digest: ", "tag: '1.1', digest: ", "ghcr.io/acme/app:1.1"),
        ("tag: ''", "tag: '1.1'", "ghcr.io/acme/app:1.1"),
        ("tag: ", "tag: '1.1'", "ghcr.io/acme/app:1.1"),
    ],
)
def test_a_digest_is_set_or_removed_with_the_tag(before: str, after: str, reference: str) -> None:
    def values(image: str) -> str:
        return f"image: {{repository: ghcr.io/acme/app, {image}}}\n"

    assert edited(values(before), promoted(reference)).replace('"', "'") == values(after)


def test_a_whole_reference_keeps_its_spelling_of_the_repository() -> None:
    assert edited("image: ghcr.io/acme/app:1.0 # x\n") == "image: ghcr.io/acme/app:1.1 # x\n"
    after = edited("image: 'acme/app:1.0'\n", promoted(f"docker.io/acme/app:1.1@{DIGEST}"))
    assert after == f"image: 'acme/app:1.1@{DIGEST}'\n"
    assert edited("image:\n") == "image: ghcr.io/acme/app:1.1\n"


@pytest.mark.parametrize(
    "values",
    [
        "image: {registry: ghcr.io, repository: acme/app, tag: '%s'}\n",
        "image: {registry: ghcr.io/acme/, repository: app, tag: '%s'}\n",
        "global: {imageRegistry: ghcr.io}\nimage: {repository: acme/app, tag: '%s'}\n",
        "global: {image: {registry: ghcr.io}}\nimage: {registry: '', repository: acme/app, tag: '%s'}\n",
        "image: {name: ghcr.io/acme/app, tag: '%s'}\n",
        "image: {name: app, tag: '%s'}\n",
        "image: {tag: '%s'}\n",
    ],
)
def test_a_repository_may_be_put_together_or_not_be_said(values: str) -> None:
    assert edited(values % "1.0") == values % "1.1"


TWO = """\
web:
  image: {repository: ghcr.io/acme/web, tag: "2.0"}
app:
  image: ghcr.io/acme/app:1.0
jobs:
- name: migrate
  version: "1.0"
"""
BOTH = (promoted(), promoted("ghcr.io/acme/web:2.1", "web"))


def test_each_path_takes_the_image_that_stands_there_or_that_it_names() -> None:
    paths: tuple[Path, ...] = (
        ("web.image.tag", "tag"),
        ("app.image", "reference"),
        ("jobs[name=migrate].version", "tag", "my-app"),
    )
    after = edited(TWO, *BOTH, paths=paths)
    assert after == TWO.replace("2.0", "2.1").replace("app:1.0", "app:1.1").replace('"1.0"', '"1.1"')
    by_repository = (*paths[:2], ("jobs[name=migrate].version", "tag", "ghcr.io/acme/app"))
    assert edited(TWO, *BOTH, paths=by_repository) == after


@pytest.mark.parametrize(
    ("image", "after"),
    [
        ("repository: mirror.example.com/app", "repository: ghcr.io/acme/app"),
        ("registry: ghcr.io, repository: other/app", "registry: ghcr.io, repository: acme/app"),
        ("registry: ghcr.io, repository: acme/app", "registry: ghcr.io, repository: acme/app"),
    ],
)
def test_a_repository_is_set_where_that_is_asked_for(image: str, after: str) -> None:
    paths: tuple[Path, ...] = (("image.repository", "repository"), ("image.tag", "tag"))
    assert edited(f"image: {{{image}, tag: old}}\n", paths=paths) == f'image: {{{after}, tag: "1.1"}}\n'


def test_a_list_of_containers_is_reached_by_name() -> None:
    text = "containers:\n- name: app\n  image: ghcr.io/acme/app:1.0\n- name: proxy\n  image: envoy:1\n"
    after = edited(text, paths=(("containers[name=app].image", "reference"),))
    assert after == text.replace("app:1.0", "app:1.1")


@pytest.mark.parametrize(
    ("text", "images", "paths", "messages", "after"),
    [
        (
            CHART.replace("acme/app", "acme/guestbok"),
            (),
            (),
            ["image.tag is about ghcr.io/acme/guestbok, not ghcr.io/acme/app"],
            CHART.replace("acme/app", "acme/guestbok").replace('"1.0"', '"1.1"'),
        ),
        (
            "image: ghcr.io/acme/other:1\n",
            (),
            (),
            ["image is about ghcr.io/acme/other, not ghcr.io/acme/app"],
            "image: ghcr.io/acme/app:1.1\n",
        ),
        (
            TWO,
            (),
            (),
            ["has no value `image`; list in values where the image is: there are web.image (ghcr.io/acme/web:2"],
            TWO,
        ),
        (
            TWO,
            BOTH,
            (("web.image.tag", "tag"),),
            ["has no path for ghcr.io/acme/app:1.1; list one in values: there are"],
            TWO.replace('"2.0"', '"2.1"'),
        ),
        (
            TWO,
            (),
            (("app.image", "reference", "ap"),),
            ["has no path for ghcr.io/acme/app:1.1; its paths are for 'ap'; list one in values"],
            TWO,
        ),
        (CHART, (), (("image.repository", "repository"),), ["has no path for ghcr.io/acme/app:1.1"], CHART),
        (
            CHART,
            (),
            (("image.tga", "tag"), ("image.tag", "tag"), ("images[0]", "reference")),
            ["image.tga: no key 'tga' in image (line 4)", "images[0]: no key 'images' in"],
            CHART.replace('"1.0"', '"1.1"'),
        ),
        (
            CHART,
            (promoted(f"ghcr.io/acme/app@{DIGEST}"),),
            (),
            ["list a path with value: digest or value: reference"],
            CHART,
        ),
        (
            CHART,
            (promoted(f"ghcr.io/acme/app:1.1@{DIGEST}"),),
            (),
            ["a tag alone may mean another image"],
            CHART.replace('"1.0"', '"1.1"'),
        ),
        ("- image: x\n", (), (), ["has no value `image`"], "- image: x\n"),
    ],
)
def test_values_without_effect_are_reported_and_others_set(
    text: str, images: tuple[PromotedImage, ...], paths: tuple[Path, ...], messages: list[str], after: str
) -> None:
    found = doubts(text, *images, paths=paths)
    assert [one for one, part in zip(found, messages, strict=True) if part not in one] == []
    assert edited(text, *images, paths=paths) == after


def test_a_path_of_an_image_that_is_not_promoted_is_passed_over() -> None:
    """A Bundle may bring some of the images of an environment."""
    paths: tuple[Path, ...] = (("web.image.tag", "tag", "web"), ("app.image", "reference", "my-app"))
    assert edited(TWO, promoted(), paths=paths) == TWO.replace("app:1.0", "app:1.1")
    assert doubts(TWO, promoted(), paths=paths) == []
    assert value_doubts(TWO.encode(), (), []) == []
    assert set_image_values(TWO.encode(), (), []) == TWO.encode()


@pytest.mark.parametrize(
    ("text", "images", "paths", "message"),
    [
        (TWO, BOTH, (), "takes 2 images, and which value belongs to which is not said; list them in values: there are"),
        (TWO, BOTH, (("jobs[0].version", "tag"),), "jobs[0].version: say by `image` which of my-app, web it takes"),
        (
            "image: {registry: quay.io, repository: acme/app, tag: x}",
            (),
            (("image.repository", "repository"), ("image.tag", "tag")),
            "ghcr.io/acme/app is not in the registry quay.io that stands beside it",
        ),
        ("a: 1\n---\nimage: x\n", (), (), "has 2 documents; the values of a chart are one"),
        ("", (), (), "has 0 documents"),
        ("image: [1]\n", (), (), "image (line 1) is a list"),
    ],
)
def test_uneditable_values_file_is_refused(
    text: str, images: tuple[PromotedImage, ...], paths: tuple[Path, ...], message: str
) -> None:
    assert message in refusal(text, *images, paths=paths)
