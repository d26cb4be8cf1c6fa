"""The colour of each state, and which URLs become links."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.promotion.api import Bundle
from kardinal.promotion.api.pipeline import Git
from kardinal.promotion.views.environments import NO_BUNDLE, EnvironmentState
from kardinal.promotion.views.states import STATES
from kardinal_controller.ui.documents.links import (
    ci_run_link,
    commit_link,
    pull_request_link,
    repository_link,
    source_link,
    web_url,
)
from kardinal_controller.ui.documents.tones import TONES, environment_mark, mark, recorded_mark
from tests.support.objects import bundle

COMMIT = "1f3ac0ffee" * 4


def test_every_state_has_a_tone_and_its_sentence() -> None:
    assert TONES.keys() == STATES.keys()
    for (kind, name), state in STATES.items():
        assert mark(kind, name).meaning == state.sentence


def test_a_state_of_another_version_is_shown_without_a_sentence() -> None:
    assert mark("PromotionStep", "Hibernating").model_dump() == {
        "kind": "PromotionStep",
        "name": "Hibernating",
        "tone": "rest",
        "meaning": "",
    }


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Verified", "PromotionStep"),
        ("Superseded", "Environment"),
        ("Blocked", "Environment"),
        (NO_BUNDLE, "Environment"),
    ],
)
def test_a_state_of_an_environment_has_the_kind_of_its_table(name: str, kind: str) -> None:
    assert recorded_mark(name).kind == kind


def test_environment_is_tinted_where_a_gate_holds_it_and_not_another_environment() -> None:
    held = EnvironmentState(name="prod", state="Waiting", message="held by hours", held_by=["hours"])
    waits = EnvironmentState(name="prod", state="Waiting", message="waits for staging")
    assert environment_mark(held).tone == "held"
    assert environment_mark(waits).tone == "rest"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,<script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example.com/x",
        "https:evil",
        "https://",
        "https://user:secret@git.example.com/x",
        "https://git.example.com/a b",
        'https://git.example.com/"onmouseover="x',
        "https://git.example.com/<script>",
        "https://git.example.com\\@evil.example.com",
        "https://git.example.com/\x00",
        "https://git.example.com:99999999/x",
        "https://[::1/x",
        "https://git.\u0435xample.com/x",
        "https://git.example.com/" + "x" * 4096,
        "",
        None,
    ],
)
def test_a_url_that_is_not_plain_http_is_no_link(url: str | None) -> None:
    assert web_url(url) is None


@pytest.mark.parametrize(
    ("provider", "url", "page"),
    [
        ("github", "https://github.com/acme/gitops.git", f"https://github.com/acme/gitops/commit/{COMMIT}"),
        ("gitlab", "https://gitlab.com/acme/a/b", f"https://gitlab.com/acme/a/b/-/commit/{COMMIT}"),
        ("gitea", "https://git.example.com/acme/gitops.git", f"https://git.example.com/acme/gitops/commit/{COMMIT}"),
        ("git", "https://git.example.com/acme/gitops.git", None),
        ("github", "ssh://git@github.com/acme/gitops.git", None),
        ("local", "/srv/gitops.git", None),
    ],
)
def test_a_commit_is_a_link_where_the_host_is_known(provider: str, url: str, page: str | None) -> None:
    link = commit_link(Git(url=url, provider=provider), COMMIT)
    assert link is not None
    assert (link.text, link.url) == (COMMIT[:7], page)
    assert commit_link(Git(url=url, provider=provider), None) is None


def test_a_repository_shows_neither_user_nor_scheme() -> None:
    link = repository_link(Git(url="ssh://git@git.example.com/shop/env.git", provider="gitea"))
    assert (link.text, link.url) == ("git.example.com/shop/env", None)
    secret = repository_link(Git(url="https://user:p@ss@git.example.com/shop/env.git", provider="gitea"))
    assert (secret.text, secret.url) == ("git.example.com/shop/env", None)
    assert repository_link(Git(url="https://github.com/a/b", provider="github")).url == "https://github.com/a/b"


def test_a_pull_request_has_its_number() -> None:
    link = pull_request_link("https://git.example.com/acme/gitops/pulls/12")
    assert link is not None
    assert (link.text, link.url) == ("#12", "https://git.example.com/acme/gitops/pulls/12")
    hostile = pull_request_link("javascript:alert(1)//12", 12)
    assert hostile is not None
    assert (hostile.text, hostile.url) == ("#12", None)


def _bundle(**provenance: Any) -> Bundle:
    return Bundle.model_validate(bundle("my-app-1", provenance=provenance))


def test_the_commit_of_a_bundle_is_linked_by_its_ci_run() -> None:
    run = "https://github.com/acme/shop/actions/runs/12"
    built = _bundle(commitSHA=COMMIT, ciRunURL=run)
    source = source_link(built)
    ci = ci_run_link(built)
    assert source is not None
    assert ci is not None
    assert (source.text, source.url) == (COMMIT[:7], f"https://github.com/acme/shop/commit/{COMMIT}")
    assert ci.url == run
    odd = _bundle(commitSHA="../../x", ciRunURL="javascript:alert(1)")
    source = source_link(odd)
    ci = ci_run_link(odd)
    assert source is not None
    assert ci is not None
    assert (source.text, source.url, ci.url) == ("../../x", None, None)
