"""From a template and its inputs to an object: tags, marks and bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kardinal_supplychain.api.templates import ImageTemplateSpec
from kardinal_supplychain.realize.context import InputValues, SourceValue, template_context
from kardinal_supplychain.realize.interpolate import InterpolationError, interpolate
from kardinal_supplychain.realize.stamp import (
    ANNOTATION_INPUTS,
    ANNOTATION_STAMP,
    ResourcePlace,
    StampError,
    render_template,
    stamp_object,
)
from kardinal_supplychain.realize.templates import template_problems, template_warnings

OWNER: dict[str, Any] = {
    "apiVersion": "carto.run/v1alpha1",
    "kind": "Workload",
    "metadata": {"name": "web", "namespace": "team", "uid": "u1", "labels": {"type": "web"}},
    "spec": {"source": {"git": {"url": "https://git.example.com/a"}}},
}
PLACE = ResourcePlace(
    blueprint="chain", resource="image", template_kind="ClusterImageTemplate", template="kpack", lifecycle="mutable"
)
INPUTS = InputValues(
    sources={"src": SourceValue("https://x/a.tgz", "main@sha1:1")}, images={"base": "r/base@sha256:1"}, configs={}
)


def context(**params: Any) -> dict[str, Any]:
    return template_context(OWNER, params=params, inputs=INPUTS, labels=PLACE.labels(OWNER))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("$(params.n)$", 3),
        ("$(params.on)$", True),
        ("$(params.o)$", {"a": [1]}),
        ("$(params.nothing)$", None),
        ("$(params.big)$", 2**60 + 1),
        ("n=$(params.n)$, o=$(params.o)$", 'n=3, o={"a":[1]}'),
        ("open $(params.n", "open $(params.n"),
        ("$5 and $(params.n)$)$", "$5 and 3)$"),
        ("$(workload.metadata.name)$", "web"),
        ("$(deliverable.metadata.name)$", "web"),
        ("$(workload.spec.source.image)$", None),
        ("$(workload.spec.serviceAccountName)$", ""),
        ("$(workload.spec.build)$", {}),
        ("$(workload.spec.build.env)$", None),
        ("$(workload.spec.source.git.ref)$", None),
        ("$(workload.spec.source)$", {"git": {"url": "https://git.example.com/a"}}),
        ("$(workload.spec.source.git.ref.tag)$", InterpolationError),
        ("$(sources.src.url)$", "https://x/a.tgz"),
        ("$(source.revision)$", "main@sha1:1"),
        ("$(images.base.image)$", "r/base@sha256:1"),
        ("$(image)$", "r/base@sha256:1"),
        ("$(labels['carto\\.run/resource-name'])$", "image"),
        ("$(workload.metadata.labels[?(@.x)])$", InterpolationError),
        ("$()$", InterpolationError),
        ("a $(params.nothing)$", InterpolationError),
        ("$(params.absent)$", InterpolationError),
        ("$(config)$", InterpolationError),
        ("$(deployment.url)$", InterpolationError),
        ("$(workload.status)$", InterpolationError),
        ("$(params.*)$", InterpolationError),
    ],
)
def test_a_tag_takes_the_value_of_its_path(text: str, value: Any) -> None:
    values = context(n=3, on=True, o={"a": [1]}, nothing=None, big=2**60 + 1)
    if value is InterpolationError:
        with pytest.raises(InterpolationError):
            interpolate(text, values)
        return
    given_back = interpolate(text, values)
    assert given_back == value
    assert type(given_back) is type(value)


@pytest.mark.parametrize(("text", "value"), [("$(params.o.a[0])$", 1), ("$(params.o.a)$", [1]), ("$(params.o..b)$", 2)])
def test_a_tag_reaches_into_a_parameter(text: str, value: Any) -> None:
    """Beyond: in Cartographer a parameter is one value, and no path leads into it."""
    assert interpolate(text, context(o={"a": [1], "c": {"b": 2}})) == value


@pytest.mark.parametrize("text", ["$(params.text)$", "a $(params.text)$-$(params.text)$"])
def test_an_inserted_value_is_not_read_again(text: str) -> None:
    """Cartographer evaluates it again, until it notices a loop."""
    assert interpolate(text, context(text="$(params.n)$", n=1)) == text.replace("text", "n")


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"a": {"b": ["$(x)$"]}}, "failed to interpolate template at path [a.b[0]]: jsonpath returned empty list: x"),
        ({"a": "$()$"}, "failed to interpolate template at path [a]: empty jsonpath not allowed"),
        ({"a": "$(params.*)$"}, "failed to interpolate template at path [a]: too many results"),
        ({"a": ["b", "c $(params.none)$"]}, "path [a[1]]: params.none is null"),
    ],
)
def test_a_tag_that_fails_says_where_it_stands(template: Any, said: str) -> None:
    with pytest.raises(InterpolationError) as failed:
        interpolate(template, context(none=None, other=1))
    assert said in str(failed.value)


def test_keys_stay_as_they_are() -> None:
    assert interpolate({"$(params.n)$": "$(params.n)$"}, context(n=1)) == {"$(params.n)$": 1}


TEMPLATE: dict[str, Any] = {
    "apiVersion": "kpack.io/v1alpha2",
    "kind": "Image",
    "metadata": {"name": "$(workload.metadata.name)$", "labels": {"own": "x"}},
    "spec": {"port": "$(params.port)$"},
}


def spec(template: dict[str, Any] | None = None, **others: Any) -> ImageTemplateSpec:
    fields = {"imagePath": "status.latestImage", "template": TEMPLATE if template is None else template, **others}
    return ImageTemplateSpec.model_validate(fields)


def stamped(template: dict[str, Any], place: ResourcePlace = PLACE, owner: dict[str, Any] = OWNER) -> dict[str, Any]:
    rendered = render_template(spec(template), context(port=8080))
    return stamp_object(rendered, owner=owner, place=place, inputs=INPUTS.to_json())


def test_an_object_is_marked_as_its_owners() -> None:
    made = stamped(TEMPLATE)
    metadata = made["metadata"]
    assert made["spec"] == {"port": 8080}
    assert (metadata["name"], metadata["namespace"]) == ("web", "team")
    assert metadata["labels"] == {
        "own": "x",
        "carto.run/workload-name": "web",
        "carto.run/workload-namespace": "team",
        "carto.run/supply-chain-name": "chain",
        "carto.run/resource-name": "image",
        "carto.run/template-kind": "ClusterImageTemplate",
        "carto.run/cluster-template-name": "kpack",
        "carto.run/template-lifecycle": "mutable",
    }
    (reference,) = metadata["ownerReferences"]
    assert (reference["kind"], reference["uid"], reference["controller"]) == ("Workload", "u1", True)
    assert set(metadata["annotations"]) == {ANNOTATION_STAMP, ANNOTATION_INPUTS}


def test_a_deliverable_has_labels_of_its_own_words() -> None:
    labels = PLACE.labels({**OWNER, "kind": "Deliverable"})
    assert labels["carto.run/deliverable-name"] == "web"
    assert labels["carto.run/delivery-name"] == "chain"
    assert not [key for key in labels if "workload" in key or "supply" in key]


def test_names_that_are_too_long_for_labels_end_in_a_hash() -> None:
    labels = PLACE.labels({**OWNER, "metadata": {"name": "a" * 253, "namespace": "team"}})
    name = labels["carto.run/workload-name"]
    assert len(name) == 63
    assert name.startswith("a" * 54 + "-")


def test_a_tenant_cannot_forge_marks_in_the_template() -> None:
    forged = {
        "metadata": {
            "name": "x",
            "namespace": "team",
            "ownerReferences": [{"kind": "Other", "uid": "u2", "controller": True}],
            "labels": {"carto.run/workload-name": "other"},
            "annotations": {ANNOTATION_STAMP: "0"},
        }
    }
    made = stamped({**TEMPLATE, **forged})
    assert [reference["uid"] for reference in made["metadata"]["ownerReferences"]] == ["u1"]
    assert made["metadata"]["labels"]["carto.run/workload-name"] == "web"
    assert made["metadata"]["annotations"][ANNOTATION_STAMP] != "0"


def test_the_hash_is_of_the_render_and_not_of_the_marks() -> None:
    def stamp_of(made: dict[str, Any]) -> str:
        return str(made["metadata"]["annotations"][ANNOTATION_STAMP])

    other = ResourcePlace(
        blueprint="renamed", resource="r", template_kind="ClusterImageTemplate", template="kpack", lifecycle="mutable"
    )
    assert stamp_of(stamped(TEMPLATE)) == stamp_of(stamped(TEMPLATE, other))
    assert stamp_of(stamped(TEMPLATE)) != stamp_of(stamped({**TEMPLATE, "spec": {}}))


BARE = {"apiVersion": "v1", "kind": "ConfigMap"}


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({**BARE, "metadata": {"name": "x", "namespace": "other"}}, "cannot set namespace in resource template"),
        ({"kind": "X", "metadata": {"name": "x"}}, "the object has no apiVersion"),
        ({"apiVersion": "v1", "metadata": {"name": "x"}}, "the object has no kind"),
        ({**BARE}, "the object has no metadata"),
        ({**BARE, "metadata": {}}, "set lifecycle: immutable"),
        ({**BARE, "metadata": {"generateName": "x-"}}, "set lifecycle: immutable"),
        ({**BARE, "metadata": {"name": "$(params.port)$"}}, "metadata.name of the object is not a text"),
        ({**BARE, "metadata": {"name": "x", "labels": {"a": "$(params.port)$"}}}, "metadata.labels[a]"),
        (
            {**BARE, "metadata": {"name": "x", "labels": "$(params.port)$"}},
            "labels of the object is not a map",
        ),
        ({**BARE, "metadata": {"name": "x"}, "data": {"a": "$(gone)$"}}, "failed to recursively evaluate template: "),
    ],
)
def test_an_object_that_cannot_be_made_says_why(template: dict[str, Any], said: str) -> None:
    with pytest.raises(StampError) as refused:
        stamped(template)
    assert said in str(refused.value)


def test_a_run_needs_a_name_or_the_beginning_of_one() -> None:
    run = ResourcePlace(
        blueprint="c", resource="r", template_kind="ClusterTemplate", template="t", lifecycle="immutable"
    )
    made = stamped({**BARE, "metadata": {"generateName": "x-"}}, run)
    assert made["metadata"]["generateName"] == "x-"
    with pytest.raises(StampError, match="neither"):
        stamped({**BARE, "metadata": {}}, run)


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("template", "params", "said"),
    [
        ({"a": deep(64)}, {}, "nested deeper than 64 levels"),
        ({"a": deep(5_000)}, {}, "not JSON"),
        ({"a": "$(params.p)$"}, {"p": deep(63)}, ""),
        ({"a": "$(params.p)$"}, {"p": deep(64)}, "nested deeper than 64 levels"),
        ({"a": "x" * (256 << 10)}, {}, "at most 262,144 are allowed"),
        (
            {"a": ["$(params.p)$"] * 20},
            {"p": "x" * (64 << 10)},
            "more than 1,048,576 bytes",
        ),
        ({"a": "$(params.p)$" * 20}, {"p": "x" * (64 << 10)}, "more than 1,048,576 bytes"),
        ({"a": "$(params.p)$"}, {"p": 2**70}, "64-bit"),
        ({"a": "$(params.p)$"}, {"p": "\ud800"}, "UTF-8"),
        ({"a": "\ud800"}, {}, "UTF-8"),
        ({"a": "$(" + "[" * 10_000 + ")$"}, {}, "at most 1024 characters"),
        ({"a": "$(" * 50_000}, {}, ""),
        ({"a": "\x00\x1b[0m$(params.p)$"}, {"p": "\x07"}, ""),
        ({"a": [f"$(params['p', 'x{n}'])$" for n in range(5_000)]}, {"p": 1}, "path [a[0]]"),
    ],
    ids=range(14),
)
def test_templates_of_strangers_are_bounded(template: Any, params: dict[str, Any], said: str) -> None:
    if not said:
        json.dumps(render_template(spec(template), context(**params)))
        return
    with pytest.raises(StampError) as refused:
        render_template(spec(template), context(**params))
    assert said in str(refused.value)
    assert len(str(refused.value)) < 1_000


def test_all_paths_of_a_template_share_a_budget() -> None:
    wide = {"p": {f"k{n}": {"x": n} for n in range(20_000)}}
    template = {"a": [f"$(params.p..k{n}.x)$" for n in range(100)]}
    with pytest.raises(StampError, match="more than 200,000 steps"):
        render_template(spec(template), context(**wide))


def test_paths_cost_their_length_because_they_are_parsed() -> None:
    values = {f"a_rather_long_name_{number:06}": number for number in range(6_000)}
    different = [f"$(params.p.{name})$" for name in values]
    with pytest.raises(StampError, match="more than 200,000 steps"):
        render_template(spec({"a": different}), context(p=values))
    assert render_template(spec({"a": different[:1] * 6_000}), context(p=values)) == {"a": [0] * 6_000}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=200, deadline=None)
@given(value=json_values, text=st.text(alphabet="$()ab.", max_size=30))
def test_stamping_twice_is_stamping_once(value: Any, text: str) -> None:
    template = {
        **BARE,
        "metadata": {"name": "x"},
        "data": {"value": "$(params.value)$", "text": text.replace(")$", "")},
    }
    first = render_template(spec(template), context(value=value))
    assert first["data"] == {"value": value, "text": text.replace(")$", "")}
    made = [stamp_object(first, owner=OWNER, place=PLACE, inputs=INPUTS.to_json()) for _ in range(2)]
    assert made[0] == made[1]
    assert "ownerReferences" not in first["metadata"], "the render itself is not changed"
    again = stamp_object(render_template(spec(template), context(value=value)), owner=OWNER, place=PLACE, inputs={})
    assert again["metadata"]["annotations"][ANNOTATION_STAMP] == made[0]["metadata"]["annotations"][ANNOTATION_STAMP]


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"imagePath": "$(status.x)$"}, "spec.imagePath", "has no tags"),
        ({"imagePath": "status["}, "spec.imagePath", "unterminated array"),
        ({"template": {"spec": {"a": "$(sorces.x.url)$"}}}, "spec.template.spec.a", "did you mean sources?"),
        ({"template": {"spec": ["$(params[)$"]}}, "spec.template.spec[0]", "unterminated array"),
        ({"template": {"metadata": {"namespace": "x"}}}, "spec.template.metadata.namespace", "leave it out"),
        ({"template": {"a": deep(70)}}, "spec.template", "nested deeper"),
    ],
)
def test_a_problem_of_a_template_names_its_field(change: dict[str, Any], field: str, said: str) -> None:
    problems = {problem.field: problem.said for problem in template_problems(spec(**change))}
    assert said in problems[field]
    assert list(template_problems(spec())) == []


JOB = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x"}}


@pytest.mark.parametrize(
    ("change", "field", "said"),
    [
        ({"template": {"kind": "X", "metadata": {"name": "x"}}}, "spec.template", "without apiVersion"),
        ({"template": {**BARE, "metadata": {}}}, "spec.template.metadata", "set lifecycle: immutable"),
        ({"template": JOB}, "spec", "cannot be changed"),
        ({"template": JOB, "lifecycle": "tekton"}, "spec", "no condition Succeeded"),
        ({"template": {**TEMPLATE, "x": "$(images.base)$"}}, "spec.template.x", "write $(images.base.image)$"),
        ({"template": {**TEMPLATE, "x": "a $(configs.c)$"}}, "spec.template.x", "write $(configs.c.config)$"),
    ],
)
def test_a_template_that_hardly_does_what_is_meant_is_a_warning(change: dict[str, Any], field: str, said: str) -> None:
    warnings = {warning.field: warning.said for warning in template_warnings(spec(**change))}
    assert said in warnings[field]
    assert list(template_warnings(spec())) == []
    assert list(template_warnings(spec(template=JOB, lifecycle="immutable"))) == []
