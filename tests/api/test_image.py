"""Image references mean the same however they are written, and a wrong one is told what is wrong with it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api.bundle import Artifacts, Chart, ConfigurationCommit, Image
from kardinal.promotion.api.image import bundle_title, bundle_version, promoted_image, promoted_images

CHART = Chart(repository="https://charts.example.com", name="web", version="2.0.0")
DIGEST = "sha256:" + "a1b2c3d4" * 8


@pytest.mark.parametrize(
    ("text", "repository", "tag", "digest"),
    [
        ("nginx", "nginx", None, None),
        ("nginx:1.27", "nginx", "1.27", None),
        ("ghcr.io/myorg/my-app:1.29.0", "ghcr.io/myorg/my-app", "1.29.0", None),
        ("localhost:5000/app", "localhost:5000/app", None, None),
        ("localhost:5000/app:v1", "localhost:5000/app", "v1", None),
        (f"registry:5000/a/b@{DIGEST}", "registry:5000/a/b", None, DIGEST),
        (f"[::1]:5000/app:v1@{DIGEST}", "[::1]:5000/app", "v1", DIGEST),
        ("a__b/c--d.e_f:_x", "a__b/c--d.e_f", "_x", None),
    ],
)
def test_a_reference_is_read_into_its_parts(text: str, repository: str, tag: str | None, digest: str | None) -> None:
    reference = ImageReference.parse(text)
    assert (reference.repository, reference.tag, reference.digest) == (repository, tag, digest)
    assert str(reference) == text


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("nginx", "docker.io/library/nginx"),
        ("library/nginx", "docker.io/library/nginx"),
        ("docker.io/nginx", "docker.io/library/nginx"),
        ("index.docker.io/library/nginx", "docker.io/library/nginx"),
        ("myorg/app", "docker.io/myorg/app"),
        ("GHCR.io/myorg/app", "ghcr.io/myorg/app"),
        ("localhost/app", "localhost/app"),
        ("localhost:5000/app", "localhost:5000/app"),
        ("quay.io/app", "quay.io/app"),
    ],
)
def test_every_way_of_writing_a_repository_has_one_canonical_form(text: str, canonical: str) -> None:
    assert ImageReference.parse(text).canonical == canonical


@pytest.mark.parametrize(
    ("text", "culprit"),
    [
        ("", "names no repository"),
        ("My-App:1", "'My-App'"),
        ("ghcr.io/my org/app:1", "'my org'"),
        ("app:", "'' is not a tag"),
        ("app:1:2", "'1:2' is not a tag"),
        ("app:-x", "'-x' is not a tag"),
        ("app@sha256:xyz", "'sha256:xyz' is not a digest"),
        ("app@1.2", "'1.2' is not a digest"),
        ("ghcr.io/", "names no repository"),
        ("-bad.io/app", "'-bad.io' is not a registry's host name"),
        ("https://ghcr.io/app:1", "'https:' is not a registry's host name"),
        ("app:1\n", "is not a tag"),
        ("a" * 300, "longer than 255"),
    ],
)
def test_a_wrong_reference_is_refused_with_the_part_that_is_wrong(text: str, culprit: str) -> None:
    with pytest.raises(ImageReferenceError) as refused:
        ImageReference.parse(text)
    assert culprit in str(refused.value)


def test_a_digest_decides_and_without_one_the_tag_does() -> None:
    pinned = ImageReference.parse(f"nginx:1.27@{DIGEST}")
    assert pinned.runs(ImageReference.parse(f"docker.io/library/nginx@{DIGEST}"))
    assert not pinned.runs(ImageReference.parse("nginx:1.27"))
    tagged = ImageReference.parse("nginx:1.27")
    assert tagged.runs(ImageReference.parse(f"nginx:1.27@{DIGEST}"))
    assert not tagged.runs(ImageReference.parse("nginx:1.26"))
    assert not tagged.runs(ImageReference.parse("quay.io/nginx:1.27"))


def test_the_digest_of_an_image_wins_over_the_one_in_its_reference() -> None:
    other = "sha256:" + "0" * 64
    assert str(promoted_image(Image(reference=f"app:1@{other}", digest=DIGEST))) == f"app:1@{DIGEST}"


def test_an_image_without_any_version_is_refused_naming_its_field() -> None:
    artifacts = Artifacts(images=(Image(reference="app:1"), Image(reference="ghcr.io/myorg/app")))
    with pytest.raises(ImageReferenceError, match=r"spec\.artifacts\.images\[1\].*add a tag or a digest"):
        promoted_images(artifacts)


def test_a_digest_that_is_not_hexadecimal_is_refused() -> None:
    with pytest.raises(ImageReferenceError, match="sha256:<hexadecimal digits>"):
        promoted_image(Image.model_construct(reference="app:1", digest="sha256:a1b2c3d4..."))


@pytest.mark.parametrize(
    ("artifacts", "version"),
    [
        (Artifacts(images=(Image(reference="app:1.29.0"), Image(reference="b:2"))), "1.29.0"),
        (Artifacts(images=(Image(reference="app", digest=DIGEST),)), "a1b2c3d4a1b2"),
        (Artifacts(images=(Image(reference="app:1"),), charts=(CHART,)), "1"),
        (
            Artifacts(
                charts=(CHART,), git_commit=ConfigurationCommit(repository="https://x/y", sha="0123456789abcdef")
            ),
            "2.0.0",
        ),
        (Artifacts(git_commit=ConfigurationCommit(repository="https://x/y", sha="0123456789abcdef")), "0123456"),
        (Artifacts(), ""),
    ],
)
def test_the_version_of_a_bundle_is_what_a_person_would_call_it(artifacts: Artifacts, version: str) -> None:
    assert bundle_version(artifacts) == version


@given(st.text(max_size=80))
def test_any_text_is_either_read_back_as_it_was_or_refused(text: str) -> None:
    try:
        reference = ImageReference.parse(text)
    except ImageReferenceError:
        return
    assert str(reference) == text
    assert reference.same_repository(ImageReference.parse(reference.canonical))


@pytest.mark.parametrize(
    ("images", "charts", "commit", "title"),
    [
        (["a:1"], [], None, "1"),
        (["a:1", "b:2", "c:3"], [], None, "1 (+2)"),
        (["a:1"], ["2.0.0"], None, "1 (+1)"),
        (["a:1"], ["2.0.0"], "0123456789", "1 (+2)"),
        ([], [], "0123456789", "0123456"),
        ([], [], None, ""),
    ],
)
def test_the_title_of_a_bundle_counts_all_artifacts(
    images: list[str], charts: list[str], commit: str | None, title: str
) -> None:
    artifacts = Artifacts(
        images=tuple(Image(reference=reference) for reference in images),
        charts=tuple(Chart(repository="https://charts.example.com", name="c", version=each) for each in charts),
        git_commit=ConfigurationCommit(repository="https://example.com/config", sha=commit) if commit else None,
    )
    assert bundle_title(artifacts) == title
