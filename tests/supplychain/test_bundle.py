"""Bundles of templates: which fields they may have, when another one is due, and whose they are."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from kardinal.models.base import Model
from kardinal.promotion.api.bundle_artifacts import Chart, ConfigurationCommit, Image, Provenance
from kardinal_supplychain.api.status import LastRun
from kardinal_supplychain.api.templates import TemplateSpec
from kardinal_supplychain.realize.bundle import (
    bundle_problems,
    commit_of,
    is_bundle,
    is_same_bundle,
    noted_bundle,
    sharing_owners,
    stamp_bundle,
)
from kardinal_supplychain.realize.context import InputValues, SourceValue, template_context
from kardinal_supplychain.realize.stamp import ResourcePlace, StampError, render_template
from kardinal_supplychain.realize.templates import template_problems, template_warnings
from tests.cli.in_process import InProcess

COMMIT = "0123456789abcdef0123456789abcdef01234567"
DIGEST = f"sha256:{'1' * 64}"
OWNER: dict[str, Any] = {
    "apiVersion": "carto.run/v1alpha1",
    "kind": "Workload",
    "metadata": {"name": "shop", "namespace": "team", "uid": "u1"},
    "spec": {},
}
PLACE = ResourcePlace(
    blueprint="chain", resource="bundle", template_kind="ClusterTemplate", template="bundle", lifecycle="mutable"
)
TEMPLATE: dict[str, Any] = {
    "apiVersion": "kardinal.io/v1alpha1",
    "kind": "Bundle",
    "metadata": {"generateName": "shop-", "labels": {"kardinal.io/pipeline": "shop", "tier": "web"}},
    "spec": {"artifacts": {"images": [{"name": "shop", "reference": "$(images.image.image)$"}]}},
}


def template(path: str = "", value: Any = None) -> dict[str, Any]:
    """Return the template with another value at a path such as `spec/intent`."""
    changed = copy.deepcopy(TEMPLATE)
    if path:
        *parents, field = path.split(" ")
        at = changed
        for parent in parents:
            at = at.setdefault(parent, {})
        at[field] = value
    return changed


def stamped(
    body: dict[str, Any] = TEMPLATE,
    *,
    image: Any = f"registry.example.com/shop@{DIGEST}",
    revision: str = f"main@sha1:{COMMIT}",
    last: LastRun | None = None,
) -> dict[str, Any]:
    inputs = InputValues(sources={"source": SourceValue("https://x/a.tgz", revision)}, images={"image": image})
    context = template_context(OWNER, params={}, inputs=inputs, labels=PLACE.labels(OWNER))
    rendered = render_template(TemplateSpec.model_validate({"template": body}), context)
    assert is_bundle(rendered)
    return stamp_bundle(rendered, owner=OWNER, place=PLACE, inputs=inputs.to_json(), last=last)


def posted(bundle: dict[str, Any]) -> LastRun:
    """Return what a status keeps of a Bundle, once it is live."""
    live = copy.deepcopy(bundle)
    live["metadata"]["uid"] = f"uid of {name_of(bundle)}"
    return noted_bundle(live, bundle, None, health="Unknown")


def name_of(bundle: dict[str, Any]) -> str:
    return str(bundle["metadata"]["name"])


def test_a_bundle_has_no_owner_and_the_labels_of_its_resource() -> None:
    bundle = stamped()
    metadata = bundle["metadata"]
    assert set(metadata) == {"name", "namespace", "labels", "annotations"}
    assert name_of(bundle).startswith("shop-")
    assert metadata["namespace"] == "team"
    assert (
        metadata["labels"] | {"carto.run/workload-name": "shop", "carto.run/resource-name": "bundle"}
        == (metadata["labels"])
    )
    assert (metadata["labels"]["kardinal.io/pipeline"], metadata["labels"]["tier"]) == ("shop", "web")
    assert bundle["spec"]["artifacts"]["images"][0]["reference"].endswith(DIGEST)


REFUSED = [
    ("spec intent skip", ["uat"], "spec.intent.skip"),
    ("spec intent skip", [], "spec.intent.skip"),
    ("spec intent rollback", {"environments": ["prod"]}, "spec.intent.rollback"),
    ("spec intent requests", [{"id": "a", "action": "promote"}], "spec.intent.requests"),
    ("spec intent graph", "manual", "spec.intent.graph"),
    ("spec intent anything", 1, "spec.intent.anything"),
    ("spec shard", "eu", "spec.shard"),
    ("spec artifacts binaries", [], "spec.artifacts.binaries"),
    ("spec artifacts images", [{"reference": "shop:1", "tag": "2"}], "spec.artifacts.images[0].tag"),
    ("spec artifacts charts", [{"values": {}}], "spec.artifacts.charts[0].values"),
    ("spec artifacts gitCommit", {"branch": "main"}, "spec.artifacts.gitCommit.branch"),
    ("spec provenance", {"attested": True}, "spec.provenance.attested"),
    ("status", {"phase": "Verified"}, "status"),
    ("metadata ownerReferences", [{"uid": "u2"}], "metadata.ownerReferences"),
    ("metadata finalizers", ["kardinal.io/proposal"], "metadata.finalizers"),
    ("metadata labels kardinal.io/bundle", "x", "metadata.labels[kardinal.io/bundle]"),
    ("metadata labels internal.kro.run/x", "x", "metadata.labels[internal.kro.run/x]"),
    ("metadata annotations kardinal.io/pin", "true", "metadata.annotations[kardinal.io/pin]"),
    ("metadata annotations kardinal.io/attestation", "ci", "metadata.annotations[kardinal.io/attestation]"),
    ("metadata labels", {}, "metadata.labels[kardinal.io/pipeline]"),
    ("spec", None, "spec"),
]


@pytest.mark.parametrize(("path", "value", "field"), REFUSED)
def test_a_field_that_a_template_may_not_set_is_refused(path: str, value: Any, field: str) -> None:
    with pytest.raises(StampError) as refused:
        stamped(template(path, value))
    assert str(refused.value).startswith(f"{field}: ")
    assert refused.value.remedy


@pytest.mark.parametrize(("path", "value", "field"), REFUSED)
def test_lint_finds_such_a_field_in_the_template(path: str, value: Any, field: str) -> None:
    spec = TemplateSpec.model_validate({"template": template(path, value)})
    (problem,) = template_problems(spec)
    assert problem.field == f"spec.template.{field}"
    assert problem.remedy


def test_all_fields_of_artifacts_and_provenance_are_allowed() -> None:
    def whole(model: type[Model]) -> dict[str, str]:
        return dict.fromkeys(model.model_json_schema(by_alias=True)["properties"], "x")

    artifacts = {"images": [whole(Image)], "charts": [whole(Chart)], "gitCommit": whole(ConfigurationCommit)}
    body = template("spec", {"type": "mixed", "artifacts": artifacts, "provenance": whole(Provenance)})
    assert not [*bundle_problems(body)]


def test_lint_lets_no_runnable_make_a_bundle(tmp_path: Path) -> None:
    document = {"apiVersion": "carto.run/v1alpha1", "kind": "ClusterRunTemplate", "metadata": {"name": "x"}}
    (tmp_path / "run.yaml").write_text(yaml.safe_dump({**document, "spec": {"template": TEMPLATE}}))
    done = InProcess(Path("/nonexistent"), tmp_path).run("lint", "-f", "run.yaml")
    assert done.code == 1
    assert "spec.template.kind" in done.out + done.err


def test_a_tenants_parameter_cannot_bring_a_refused_field() -> None:
    body = template("spec intent", "$(params.intent)$")
    context = {"params": {"intent": {"skip": ["prod"]}}, "images": {"image": {"image": f"shop@{DIGEST}"}}}
    rendered = render_template(TemplateSpec.model_validate({"template": body}), context)
    with pytest.raises(StampError, match=r"spec\.intent\.skip"):
        stamp_bundle(rendered, owner=OWNER, place=PLACE, inputs={}, last=None)


def test_lint_accepts_the_template_and_wants_the_health_of_the_bundle() -> None:
    with_rule = {"template": TEMPLATE, "healthRule": {"singleConditionType": "Ready"}}
    assert not [*template_problems(TemplateSpec.model_validate(with_rule))]
    assert not [*template_warnings(TemplateSpec.model_validate(with_rule))]
    (warning,) = template_warnings(TemplateSpec.model_validate({"template": TEMPLATE}))
    assert "singleConditionType: Ready" in warning.remedy


@pytest.mark.parametrize(
    ("image", "said"),
    [
        ("registry.example.com/shop", "neither tag nor digest"),
        ("registry.example.com:5000/shop", "neither tag nor digest"),
        ("Registry/Shop:1", "images[0].reference: "),
        ({"image": "x"}, "images[0].reference: it is not a text"),
    ],
)
def test_an_image_without_a_version_is_refused(image: Any, said: str) -> None:
    with pytest.raises(StampError) as refused:
        stamped(image=image)
    assert "spec.artifacts.images[0].reference" in str(refused.value)
    assert said in str(refused.value)


def test_a_bundle_without_artifacts_is_refused() -> None:
    values: tuple[Any, ...] = ({}, {"images": []}, None)
    for nothing in values:
        with pytest.raises(StampError, match="nothing to promote"):
            stamped(template("spec artifacts", nothing))


def test_a_digest_beside_the_reference_is_a_version() -> None:
    images = [{"reference": "registry.example.com/shop", "digest": DIGEST}]
    assert stamped(template("spec artifacts", {"images": images}))["spec"]["artifacts"]["images"] == images


@pytest.mark.parametrize(
    ("revision", "commit"),
    [
        (f"main@sha1:{COMMIT}", COMMIT),
        (f"feature/one@sha1:{COMMIT}", COMMIT),
        (f"refs/tags/v1.0.0@sha1:{COMMIT}", COMMIT),
        (f"sha1:{COMMIT}", None),
        (f"main/{COMMIT}", COMMIT),
        (f"feature/one/{COMMIT}", COMMIT),
        ("feature/0123456", None),
        (COMMIT, COMMIT),
        ("0123456", "0123456"),
        (f"latest@{DIGEST}", None),
        (f"main@sha1:{COMMIT}\n", None),
        (COMMIT.upper(), None),
        ("main", None),
        ("", None),
    ],
)
def test_a_revision_of_flux_has_its_commit(revision: str, commit: str | None) -> None:
    assert commit_of(revision) == commit


def with_commit(sha: str = "$(sources.source.revision)$") -> dict[str, Any]:
    body = template("spec type", "mixed")
    body["spec"]["artifacts"]["gitCommit"] = {"repository": "https://git.example.com/shop", "sha": sha}
    return body


def test_a_git_commit_takes_the_id_out_of_a_revision() -> None:
    assert stamped(with_commit())["spec"]["artifacts"]["gitCommit"]["sha"] == COMMIT


def test_a_git_commit_without_an_id_is_refused() -> None:
    with pytest.raises(StampError, match=r"spec\.artifacts\.gitCommit\.sha"):
        stamped(with_commit(), revision="main")


def test_a_provenance_without_a_commit_stays_empty() -> None:
    bundle = stamped(template("spec provenance", {"author": "ada"}))
    assert bundle["spec"]["provenance"] == {"author": "ada"}
    assert "provenance" not in stamped()["spec"]


def test_a_commit_that_the_template_names_is_an_id_in_the_provenance() -> None:
    bundle = stamped(template("spec provenance", {"commitSHA": "$(sources.source.revision)$"}))
    assert bundle["spec"]["provenance"] == {"commitSHA": COMMIT}


def test_another_bundle_is_due_when_artifacts_or_type_change() -> None:
    first = stamped()
    before = posted(first)
    assert name_of(stamped(last=before)) == before.name
    for other in (
        stamped(image="registry.example.com/shop:2", last=before),
        stamped(template("spec type", "mixed"), last=before),
        stamped(with_commit(), last=before),
    ):
        assert name_of(other) != before.name


def test_another_origin_or_target_of_the_same_artifacts_makes_no_bundle() -> None:
    before = posted(stamped())
    for body in (
        template("spec provenance", {"author": "ada"}),
        template("spec intent", {"target": "uat"}),
        template("spec type", "image"),
        template("metadata annotations", {"note": "x"}),
        template("metadata generateName", "other-"),
    ):
        assert name_of(stamped(body, last=before)) == before.name


def test_a_version_that_comes_back_is_a_third_bundle() -> None:
    first = stamped(image="shop:1")
    second = stamped(image="shop:2", last=posted(first))
    third = stamped(image="shop:1", last=posted(second))
    assert len({name_of(first), name_of(second), name_of(third)}) == 3


def test_a_crash_between_creation_and_status_makes_no_second_bundle() -> None:
    before = posted(stamped(image="shop:1"))
    assert name_of(stamped(image="shop:2", last=before)) == name_of(stamped(image="shop:2", last=before))


def test_long_names_keep_their_hash() -> None:
    names = {name_of(stamped(template("metadata generateName", "a" * 100), image=f"shop:{tag}")) for tag in (1, 2)}
    assert {len(name) for name in names} == {63}
    assert len(names) == 2


def test_a_bundle_that_the_server_has_completed_is_the_same() -> None:
    wanted = stamped(template("spec provenance", {"author": "ada"}))
    live = copy.deepcopy(wanted)
    live["metadata"]["uid"] = "b1"
    live["spec"] |= {"type": "image", "intent": {"requests": [{"id": "a", "action": "promote"}], "target": "prod"}}
    live["spec"]["artifacts"]["gitCommit"] = None
    assert is_same_bundle(live, wanted)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("spec type", "mixed"),
        ("spec artifacts images", [{"name": "shop", "reference": "evil:1"}]),
        ("spec artifacts charts", [{"repository": "https://x", "name": "a", "version": "1"}]),
        ("spec provenance", {"author": "eve"}),
        ("spec intent", {"skip": ["uat"]}),
        ("spec intent", {"rollback": {"environments": ["prod"]}}),
        ("spec intent", {"graph": "manual"}),
        ("metadata labels kardinal.io/pipeline", "other"),
    ],
)
def test_a_bundle_of_the_computed_name_with_another_spec_is_not_the_same(path: str, value: Any) -> None:
    wanted = stamped()
    live = copy.deepcopy(wanted)
    *parents, field = path.split(" ")
    at = live
    for parent in parents:
        at = at.setdefault(parent, {})
    at[field] = value
    assert not is_same_bundle(live, wanted)


def owner(name: str, kind: str = "Workload", namespace: str = "team") -> dict[str, Any]:
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}}


def of(name: str, *, kind: str = "workload", pipeline: str = "shop", type_: str = "image") -> dict[str, Any]:
    labels = {"kardinal.io/pipeline": pipeline, f"carto.run/{kind}-name": name}
    return {"metadata": {"name": f"{name}-1", "labels": labels}, "spec": {"type": type_, "artifacts": {}}}


def test_owners_that_share_a_pipeline_and_a_type_are_named() -> None:
    owners = [owner("shop"), owner("cart"), owner("cart", "Deliverable"), owner("far", namespace="other")]
    bundles = [
        of("shop"),
        of("cart"),
        of("cart", kind="deliverable"),
        of("gone"),
        of("far"),
        {"metadata": {"name": "by-hand", "labels": {"kardinal.io/pipeline": "shop"}}, "spec": {"artifacts": {}}},
    ]
    assert sharing_owners(stamped(), owner=OWNER, owners=owners, bundles=bundles) == [
        "Deliverable cart",
        "Workload cart",
    ]


@pytest.mark.parametrize("other", [of("cart", pipeline="cart"), of("cart", type_="config")])
def test_owners_of_another_pipeline_or_type_share_nothing(other: dict[str, Any]) -> None:
    assert not sharing_owners(stamped(), owner=OWNER, owners=[owner("cart")], bundles=[other])


def test_the_example_ends_in_a_bundle(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "supply-chain-standins"
    program = InProcess(Path("/nonexistent"), tmp_path)
    assert program.run("lint", "-f", str(example)).code == 0
    outputs = {
        "source.url": "http://x/a.tgz",
        "source.revision": f"main@sha1:{COMMIT}",
        "test.url": "http://x/a.tgz",
        "test.revision": f"main@sha1:{COMMIT}",
        "image.image": f"shop@{DIGEST}",
    }
    options = [part for name, value in outputs.items() for part in ("--output", f"{name}={value}")]
    done = program.run("render", "-f", str(example), "-w", str(example / "workload.yaml"), *options)
    assert (done.code, done.err) == (0, "")
    bundle = [*yaml.safe_load_all(done.out)][-1]
    assert is_bundle(bundle)
    assert bundle["spec"]["artifacts"]["images"] == [{"reference": f"shop@{DIGEST}"}]
