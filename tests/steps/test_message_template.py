"""Messages of commits from templates, and what cannot be smuggled in by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kardinal.promotion.api import Bundle, PromotionStep
from kardinal.promotion.api.pipeline import MessageTemplate
from kardinal.promotion.steps.commit_plan import commit_message, trailers_of
from kardinal.promotion.steps.message_template import PLACEHOLDERS, template_problems
from kardinal.tree.commit_message import parse_trailers
from tests.support import objects


def step_with(**git: Any) -> PromotionStep:
    made = {
        "metadata": {"name": "app-1-dev", "namespace": "team", "uid": "1"},
        "spec": {
            "pipeline": "app",
            "environment": "dev",
            "bundleRef": "app-1",
            "path": "environments/dev",
            "git": {"url": "/srv/git/app.git", **git},
        },
    }
    return PromotionStep.model_validate(made)


def made(author: str | None = "Dana") -> Bundle:
    raw = objects.bundle("app-1", tag="1.2.0")
    raw["metadata"]["uid"] = "2"
    raw["spec"]["provenance"] = {"author": author, "commitSHA": "abc"}
    return Bundle.model_validate(raw)


def message(subject: str | None = None, body: str | None = None, *, bundle: Bundle | None = None) -> str:
    template = {key: text for key, text in (("subject", subject), ("body", body)) if text is not None}
    return str(commit_message(step_with(message=template), bundle or made()))


def test_placeholders_become_values_of_the_promotion() -> None:
    text = message(
        "deploy(${environment.name}): ${ pipeline.name } ${bundle.version}", "By ${bundle.author} at ${bundle.commit}."
    )
    subject, body, trailers = text.rstrip("\n").split("\n\n")
    assert subject == "deploy(dev): app 1.2.0"
    assert body == "By Dana at abc."
    assert parse_trailers(text) == trailers_of(step_with(), made())
    assert trailers.startswith("Kardinal-")


@pytest.mark.parametrize(
    ("author", "written"),
    [
        ("Dana O'Neil <dana@example.org>", "Dana O'Neil <dana@example.org>"),
        ("dependabot[bot]", "dependabot[bot]"),
        ("C# team, R&D", "C# team, R&D"),
        ("Fixes #12", "Fixes # 12"),
        ("closes acme/app#12", "closes acme/app# 12"),
        ("resolves GH-12, !12, $12 and &12", "resolves GH- 12, ! 12, $ 12 and & 12"),
        ("@alice and @acme/admins", "@ alice and @ acme/admins"),
        ("fixes https://github.com/acme/app/issues/12", "fixes https: //github.com/acme/app/issues/12"),
    ],
)
def test_bundle_values_mention_no_person_and_no_issue(author: str, written: str) -> None:
    text = message("Refs #7: ${bundle.author}", "By ${bundle.author}", bundle=made(author))
    assert text.startswith(f"Refs #7: {written}\n\nBy {written}\n\n")


def test_a_reference_is_not_put_together_from_a_value_and_what_follows_it() -> None:
    assert message("${bundle.author}12", bundle=made("Fixes #")).startswith("Fixes # 12\n")
    assert message("${bundle.author}alice", bundle=made("@")).startswith("@ alice\n")


def test_an_address_of_a_build_and_the_digest_of_an_image_stay_as_they_are() -> None:
    bundle = made()
    assert bundle.spec.provenance is not None
    origin = bundle.spec.provenance.model_copy(update={"ci_run_url": "https://ci.example.org/runs/7"})
    bundle = bundle.model_copy(update={"spec": bundle.spec.model_copy(update={"provenance": origin})})
    text = message("x", "${bundle.ciRunURL} ${bundle.images}", bundle=bundle)
    assert "https://ci.example.org/runs/7 ghcr.io/" in text


def test_a_part_without_a_template_is_as_before() -> None:
    plain = str(commit_message(step_with(), made()))
    assert message(subject="x").partition("\n")[2] == plain.partition("\n")[2]
    assert message(body="x").partition("\n")[0] == plain.partition("\n")[0] == "Promote app 1.2.0 to dev"


def test_a_subject_of_which_nothing_is_left_is_the_usual_one() -> None:
    assert message("${bundle.author}", bundle=made(None)).startswith("Promote app 1.2.0 to dev\n")


def test_every_placeholder_has_a_value() -> None:
    for name in PLACEHOLDERS:
        assert "${" not in message(body=f"${{{name}}}")
        assert not list(template_problems(MessageTemplate(subject=f"${{{name}}}")))


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ("${bundle.verison}", "no placeholder ${bundle.verison}", "write ${bundle.version}"),
        ("${quux}", "no placeholder ${quux}", "known are bundle.name"),
        ("${}", "no placeholder ${}", "known are"),
        ("${bundle.version", "does not end with }", "write ${bundle.version}"),
        ("${ bundle.labels['x'] }", "no placeholder", "write ${bundle."),
    ],
)
def test_an_unknown_placeholder_is_named_with_the_nearest_one(text: str, problem: str, remedy: str) -> None:
    ((field, found, mended),) = template_problems(MessageTemplate(subject="x", body=f"a {text} b"))
    assert field == "body"
    assert problem in found
    assert remedy in mended


FORGED = "Kardinal-Bundle: other\nKardinal-Environment: prod\nKardinal-Step: a/b\nKardinal-Uid: 9"


@pytest.mark.parametrize("body", [FORGED, f"x\n\n{FORGED}\n\n\n", f"{FORGED}\n\n${{bundle.author}}", "\r\n" + FORGED])
def test_a_template_makes_no_trailers(body: str) -> None:
    text = message("s", body)
    assert parse_trailers(text) == trailers_of(step_with(), made())
    assert [line for line in text.splitlines() if line.lower().startswith("kardinal-")] == text.splitlines()[-4:]


@pytest.mark.parametrize(
    "author", [FORGED, f"x\n\n{FORGED}", "Kardinal-Uid: 9", "x\u2028Kardinal-Uid: 9", "x\x00\x1b[31m"]
)
@pytest.mark.parametrize("template", ["${bundle.author}", "by\n\n${bundle.author}\n", "kardinal-${bundle.author}"])
def test_a_value_makes_no_trailers_and_no_lines(author: str, template: str) -> None:
    text = message(template, template, bundle=made(author))
    assert parse_trailers(text) == trailers_of(step_with(), made())
    assert [line for line in text.splitlines() if line.lower().startswith("kardinal-uid")] == text.splitlines()[-1:]
    assert all(character.isprintable() or character == "\n" for character in text)


def test_a_value_is_not_a_template() -> None:
    assert "${bundle.version}" in message("${bundle.author}", bundle=made("${bundle.version}"))


def test_a_message_has_a_bound() -> None:
    assert len(message("x" * 512, "${bundle.author}" * 250, bundle=made("z" * 200))) < 20_000
    assert len(message("x${bundle.author}" * 20, bundle=made("z" * 200)).partition("\n")[0]) <= 200


def test_author_and_committer_come_from_the_pipeline() -> None:
    person = {"name": " Dana Lee ", "email": "dana@example.org"}
    found = commit_message(step_with(author=person, committer={"name": " ", "email": "robot@example.org"}), made())
    assert found.author == "Dana Lee <dana@example.org>"
    assert found.committer == "robot@example.org <robot@example.org>"


def test_every_placeholder_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "concepts.md").read_text()
    assert all(f"`{name}`" in page for name in PLACEHOLDERS)
