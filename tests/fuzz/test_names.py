"""Repository URLs, image references, labels and owner references that anybody may write."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kardinal.graph.identity import is_owned_by
from kardinal.objects import GRAPH, controller_of
from kardinal.objects.image_reference import ImageReference, ImageReferenceError
from kardinal.promotion.api import PolicyGate
from kardinal.promotion.api.names import bundle_name, gate_name, label_value, step_name
from kardinal.promotion.policy.matching import collect
from kardinal.promotion.policy.template_warnings import gate_warnings
from kardinal.tree.repository_url import InvalidRepositoryURL, LocalRepositoryRefused, RepositoryURL
from tests.fuzz.inputs import fuzzed, texts

hosts = st.sampled_from(
    ["git.example", "GIT.example:443", "[::1]:8443", "user:hunter2@git.example", "a b", "", "xn--e1a"]
)
paths = st.lists(st.sampled_from(["team", "repo.git", "..", ".", "", "%2e%2e", "%2F", "ü", "a?b", "a#b", "@"]) | texts)
urls = texts | st.builds(
    "{}://{}/{}".format,
    st.sampled_from(["https", "HTTPS", "http", "file", "ext", "ssh", ""]),
    hosts,
    paths.map("/".join),
)
labels = st.dictionaries(
    st.sampled_from(["kardinal.io/type", "kardinal.io/scope", "kardinal.io/applies-to", "kardinal.io/pipeline"]), texts
)


def parsed_or_refused(url: str, *, allow_local: bool) -> RepositoryURL | Exception:
    try:
        return RepositoryURL.parse(url, allow_local=allow_local)
    except (InvalidRepositoryURL, LocalRepositoryRefused) as error:
        return error


@fuzzed
@given(url=urls, allow_local=st.booleans())
def test_any_url_is_normalised_or_refused_without_its_credentials(url: str, allow_local: bool) -> None:
    parsed = parsed_or_refused(url, allow_local=allow_local)
    if isinstance(parsed, Exception):
        assert "user:hunter2@" not in url or "hunter2" not in str(parsed)
        return
    scheme, _, rest = parsed.text.partition("://")
    user, _, host = rest.partition("/")[0].rpartition("@")
    assert ".." not in parsed.text.split("/")
    assert (parsed.path is not None) is (scheme == "file")
    assert scheme in ("https", "ssh", "file") or (scheme == "http" and host.startswith(("localhost", "127.", "[::1]")))
    # The user of ssh is no secret; a password is, wherever it stands.
    assert (bool(user), ":" in user) == (scheme == "ssh", False)
    assert RepositoryURL.parse(parsed.text, allow_local=allow_local).text == parsed.text


@fuzzed
@given(text=texts | st.from_regex(r"[a-z0-9./:@_-]{0,80}", fullmatch=True))
def test_any_reference_is_read_back_as_it_was_or_refused(text: str) -> None:
    try:
        reference = ImageReference.parse(text)
    except ImageReferenceError:
        return
    assert ImageReference.parse(str(reference)) == reference
    assert reference.same_repository(reference)


@fuzzed
@given(texts, texts, texts)
def test_any_name_fits_where_names_go(first: str, second: str, third: str) -> None:
    for name in (step_name(first, second), gate_name(first, second, third), bundle_name(first[:40], second, "0" * 8)):
        assert len(name) <= 63
    assert len(label_value(first)) <= 63


@fuzzed
@given(marks=labels, org=st.booleans())
def test_any_labels_make_a_gate_bind_or_warn(marks: dict[str, str], org: bool) -> None:
    namespace = "policies" if org else "team"
    gate = PolicyGate.model_validate(
        {"metadata": {"name": "g", "namespace": namespace, "labels": marks}, "spec": {"expression": "true"}}
    )
    gate_warnings(gate, unknown=(), policy_namespaces={"policies"})
    found = collect([gate], pipeline="app", namespace="team", policy_namespaces={"policies"})
    if org and marks.get("kardinal.io/type") != "freeze":
        assert [each.scope for each in found] == ["org"]


references = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "apiVersion": st.just(GRAPH.api_version) | texts,
            "kind": st.just("Graph") | texts,
            "name": texts,
            "uid": st.just("mine") | texts,
            "controller": st.booleans() | texts,
        },
    ),
    max_size=3,
)


@fuzzed
@given(owners=references)
def test_any_owner_references_name_a_controller_or_none(owners: list[dict[str, Any]]) -> None:
    obj = {"metadata": {"name": "x", "ownerReferences": owners}}
    found = controller_of(obj, GRAPH)
    if found is not None:
        assert any(each.get("uid", "") == found.uid and each.get("controller") is True for each in owners)
    if is_owned_by(obj, "mine"):
        assert any(each.get("uid") == "mine" for each in owners)
