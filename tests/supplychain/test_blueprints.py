"""Which blueprint, option and parameters an owner gets, and the order of the resources."""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import pytest
import yaml

from kardinal_supplychain.api.blueprints import (
    ClusterDelivery,
    ClusterSupplyChain,
    SupplyChainResource,
    TemplateReference,
)
from kardinal_supplychain.api.fields import BlueprintParam, FieldRequirement, OwnerParam, TemplateParam
from kardinal_supplychain.blueprints.compile import BlueprintCycle, inputs_of, stamping_order
from kardinal_supplychain.blueprints.options import NoOption, OptionFailed, chosen_option
from kardinal_supplychain.blueprints.owner import owner_document
from kardinal_supplychain.blueprints.params import resolve_params
from kardinal_supplychain.blueprints.select import OwnerSelector, judge, winners
from kardinal_supplychain.blueprints.validate import blueprint_problems, blueprint_warnings

WORKLOAD: dict[str, Any] = {
    "apiVersion": "carto.run/v1alpha1",
    "kind": "Workload",
    "metadata": {"name": "web", "namespace": "team", "labels": {"type": "web", "tier": "1"}, "resourceVersion": "7"},
    "spec": {
        "source": {"git": {"url": "https://git.example.com/a", "ref": {"branch": "main"}}},
        "params": [{"name": "n", "value": 3}, {"name": "on", "value": True}],
    },
    "status": {"conditions": []},
}


def selector(**parts: Any) -> OwnerSelector:
    spec = {"selector": {}, "resources": [], **parts}
    return OwnerSelector.of_blueprint(ClusterSupplyChain.model_validate({"spec": spec}).spec)


def field(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def score(**parts: Any) -> int:
    return judge(selector(**parts), WORKLOAD).score


def test_a_score_is_the_number_of_requirements_all_of_which_must_hold() -> None:
    two = {"type": "web", "tier": "1"}
    assert score(selector=two) == 2
    assert score(selector=two, selectorMatchExpressions=[field("type", "Exists")]) == 3
    assert score(selector=two, selectorMatchFields=[field("spec.source.git", "Exists")]) == 3
    assert score(selector={**two, "other": "x"}) == 0
    assert score() == 0


def test_the_highest_score_wins_and_a_tie_has_several_winners() -> None:
    verdicts = [judge(selector(selector=each), WORKLOAD) for each in ({"type": "web"}, {"type": "x"}, {"tier": "1"})]
    assert winners(verdicts) == (0, 2)
    better = judge(selector(selector={"type": "web", "tier": "1"}), WORKLOAD)
    assert winners([*verdicts, better]) == (3,)
    assert winners([judge(selector(), WORKLOAD)]) == ()


def test_fields_alone_select_an_owner_without_labels() -> None:
    """Cartographer selects no owner that has no labels."""
    bare = {**WORKLOAD, "metadata": {"name": "web", "namespace": "team"}}
    assert judge(selector(selectorMatchFields=[field("spec.source.git.url", "Exists")]), bare).score == 1


@pytest.mark.parametrize(
    ("key", "operators"),
    [
        # The operators that hold: of a value that is there and of that in values, of null, and of nothing.
        ("spec.source.git.url", {"Exists", "In"}),
        ("workload.spec.source.git.url", {"Exists", "In"}),
        ("spec.source.image", {"DoesNotExist", "NotIn"}),
        ("spec.source.git.ref.tag", {"DoesNotExist", "NotIn"}),
        ("spec.build", {"Exists", "NotIn"}),
        ("spec.image", {"DoesNotExist", "NotIn"}),
        ("spec.image.name", {"DoesNotExist"}),
        ("metadata.annotations", {"DoesNotExist"}),
        ("deliverable.spec.source.git.url", {"DoesNotExist"}),
    ],
)
def test_operators_hold_for_a_field_that_is_there_null_or_absent(key: str, operators: set[str]) -> None:
    """An absent field does not meet NotIn, as in Cartographer, although an absent label does."""
    values = {"In": ["https://git.example.com/a"], "NotIn": ["other"], "Exists": [], "DoesNotExist": []}
    held = {op for op in values if score(selectorMatchFields=[field(key, op, *values[op])])}
    if key.endswith("git.url") and "deliverable" not in key:
        operators = operators | {"NotIn"}
    assert held == operators


@pytest.mark.parametrize(("name", "text"), [("n", "3"), ("on", "true")])
def test_numbers_and_booleans_compare_as_json_text(name: str, text: str) -> None:
    """Cartographer compares texts alone."""
    key = f'spec.params[?(@.name=="{name}")].value'
    assert score(selectorMatchFields=[field(key, "In", text)]) == 1
    assert score(selectorMatchFields=[field(key, "NotIn", text)]) == 0


def test_a_path_that_cannot_be_evaluated_fails_its_selector_alone() -> None:
    verdict = judge(selector(selectorMatchFields=[field("spec.params[*].name", "Exists")]), WORKLOAD)
    assert verdict.score == 0
    assert verdict.failing is not None
    assert "too many results" in verdict.failing.error


def test_templates_and_selectors_read_metadata_and_spec_without_what_changes_by_itself() -> None:
    """Cartographer lets templates read the status, so that an object may be stamped anew for what it causes itself."""
    document = owner_document(WORKLOAD)
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}
    assert "resourceVersion" not in document["metadata"]
    assert document["spec"]["serviceAccountName"] == ""
    assert document["spec"]["build"] == {}
    assert document["spec"]["source"]["image"] is None
    assert document["spec"]["source"] == WORKLOAD["spec"]["source"], "what is not set is read, and not there"
    assert "resourceVersion" in WORKLOAD["metadata"], "the owner itself is not changed"


def options(*entries: dict[str, Any]) -> TemplateReference:
    return TemplateReference.model_validate({"options": list(entries)})


GIT = {"name": "git", "selector": {"matchFields": [field("workload.spec.source.git", "Exists")]}}
IMAGE = {"name": "image", "selector": {"matchFields": [field("workload.spec.source.image", "Exists")]}}


def test_one_option_is_chosen_by_its_selector() -> None:
    chosen = chosen_option(options(GIT, IMAGE), WORKLOAD, place="resource [a]")
    assert chosen is not None
    assert chosen.name == "git"
    assert chosen_option(TemplateReference(name="git"), WORKLOAD, place="") is None


def test_the_option_with_more_requirements_wins() -> None:
    both = copy.deepcopy(GIT)
    both["name"] = "more"
    both["selector"]["matchLabels"] = {"type": "web"}  # type: ignore[index]
    chosen = chosen_option(options(GIT, both), WORKLOAD, place="")
    assert chosen is not None
    assert chosen.name == "more"


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ((IMAGE, {"name": "none", "selector": {}}), "found [0] matching options [] for resource [a]"),
        ((GIT, {**GIT, "name": "too"}), "found [2] matching options [git, too] for resource [a]"),
    ],
)
def test_another_number_of_options_than_one_is_refused(entries: tuple[dict[str, Any], ...], said: str) -> None:
    with pytest.raises(NoOption) as refused:
        chosen_option(options(*entries), WORKLOAD, place="resource [a]")
    assert str(refused.value) == f"expected exactly 1 option to match, {said}"


def test_an_option_whose_path_is_wrong_says_which() -> None:
    wrong = {"name": "x", "selector": {"matchFields": [field("spec.params[*].name", "Exists")]}}
    with pytest.raises(OptionFailed, match=r"template option \[x\] for resource \[a\]"):
        chosen_option(options(GIT, wrong), WORKLOAD, place="resource [a]")


NAME = "p"
TRUTH = {
    # template, blueprint, resource -> who wins without an owner's value, and with it
    (None, None, None): (None, "owner"),
    ("T", None, None): ("T", "owner"),
    (None, "value", None): ("B", "B"),
    ("T", "value", None): ("B", "B"),
    (None, "default", None): ("B", "owner"),
    ("T", "default", None): ("B", "owner"),
    (None, None, "value"): ("R", "R"),
    ("T", None, "value"): ("R", "R"),
    (None, None, "default"): ("R", "owner"),
    ("T", None, "default"): ("R", "owner"),
    (None, "value", "value"): ("R", "R"),
    ("T", "value", "value"): ("R", "R"),
    (None, "value", "default"): ("R", "owner"),
    ("T", "value", "default"): ("R", "owner"),
    (None, "default", "value"): ("R", "R"),
    ("T", "default", "value"): ("R", "R"),
    (None, "default", "default"): ("R", "owner"),
    ("T", "default", "default"): ("R", "owner"),
}
"""The winner for each combination of what the template, the blueprint and the resource write."""


def test_the_truth_table_of_params_has_every_combination() -> None:
    written = (None, "value", "default")
    assert set(TRUTH) == set(itertools.product((None, "T"), written, written))


@pytest.mark.parametrize("combination", TRUTH, ids=str)
@pytest.mark.parametrize("has_owner", [False, True], ids=["no owner", "owner"])
def test_the_last_layer_that_may_write_a_param_wins(
    combination: tuple[str | None, str | None, str | None], has_owner: bool
) -> None:
    template, blueprint, resource = combination

    def written(how: str | None, value: str) -> list[BlueprintParam]:
        return [BlueprintParam.model_validate({"name": NAME, how: value})] if how else []

    resolved = resolve_params(
        template=[TemplateParam(name=NAME, default="T")] if template else [],
        blueprint=written(blueprint, "B"),
        resource=written(resource, "R"),
        owner=[OwnerParam(name=NAME, value="owner")] if has_owner else [],
    )
    expected = TRUTH[combination][has_owner]
    assert {name: param.value for name, param in resolved.items()} == ({NAME: expected} if expected else {})


CHAIN = """
metadata: {name: web}
spec:
  selector: {type: web}
  resources:
    - name: image
      templateRef: {kind: ClusterImageTemplate, name: kpack}
      sources: [{name: source, resource: source}]
    - name: source
      templateRef:
        kind: ClusterSourceTemplate
        options:
          - {name: git, selector: {matchFields: [{key: spec.source.git, operator: Exists}]}}
          - {name: image, selector: {matchFields: [{key: spec.source.image, operator: Exists}]}}
    - name: config
      templateRef: {kind: ClusterConfigTemplate, name: config}
      images: [{name: image, resource: image}]
    - name: push
      templateRef: {kind: ClusterTemplate, name: push}
      configs: [{name: config, resource: config}]
"""
DELIVERY = """
metadata: {name: web}
spec:
  selectorMatchFields: [{key: deliverable.spec.source.git, operator: Exists}]
  resources:
    - name: source
      templateRef: {kind: ClusterSourceTemplate, name: git}
    - name: deploy
      templateRef: {kind: ClusterDeploymentTemplate, name: app}
      deployment: {resource: source}
    - name: check
      templateRef: {kind: ClusterSourceTemplate, name: check}
      sources: [{name: deployed, resource: deploy}]
"""


def chain(text: str = CHAIN, *, delivery: bool = False) -> Any:
    model = ClusterDelivery if delivery else ClusterSupplyChain
    return model.model_validate(yaml.safe_load(text))


def test_resources_are_ordered_by_their_inputs_and_then_as_written() -> None:
    """A resource may take an output of one that is written after it, which Cartographer refuses."""
    assert stamping_order(chain().spec.resources) == ("source", "image", "config", "push")


def test_resources_without_inputs_keep_the_order_in_which_they_are_written() -> None:
    reference = {"kind": "ClusterSourceTemplate", "name": "t"}
    resources = [SupplyChainResource.model_validate({"name": name, "templateRef": reference}) for name in "cabed"]
    assert stamping_order(resources) == tuple("cabed")


def test_an_order_is_the_same_for_any_order_of_the_inputs() -> None:
    chance = random.Random(7)
    for _ in range(50):
        size = chance.randint(1, 30)
        entries = []
        for index in range(size):
            inputs = chance.sample(range(index), min(index, chance.randint(0, 3)))
            sources = [{"name": f"i{each}", "resource": f"r{each}"} for each in inputs]
            reference = {"kind": "ClusterSourceTemplate", "name": "t"}
            entries.append({"name": f"r{index}", "templateRef": reference, "sources": sources})
        chance.shuffle(entries)
        resources = [SupplyChainResource.model_validate(entry) for entry in entries]
        order = stamping_order(resources)
        assert sorted(order) == sorted(resource.name for resource in resources)
        for resource in resources:
            assert all(order.index(edge.producer) < order.index(resource.name) for edge in inputs_of(resource))
        again = [resource.model_copy(update={"sources": resource.sources[::-1]}) for resource in resources]
        assert stamping_order(again) == order


def test_a_cycle_names_its_resources() -> None:
    text = CHAIN.replace("    - name: source\n", "    - name: source\n      configs: [{name: c, resource: config}]\n")
    with pytest.raises(BlueprintCycle) as refused:
        stamping_order(chain(text).spec.resources)
    assert set(refused.value.names) == {"source", "image", "config"}
    assert refused.value.names[0] == refused.value.names[-1]


def test_blueprints_that_work_have_no_problems() -> None:
    assert list(blueprint_problems(chain())) == []
    assert list(blueprint_problems(chain(DELIVERY, delivery=True))) == []
    assert list(blueprint_warnings(chain())) == []


@pytest.mark.parametrize(
    ("before", "after", "field", "said"),
    [
        ("selector: {type: web}", "selector: {}", "spec.selector", "it selects nothing"),
        (
            "selector: {type: web}",
            "selectorMatchExpressions: [{key: a, operator: In}]",
            "spec.selectorMatchExpressions[0].values",
            "In needs values",
        ),
        (
            "operator: Exists}]}}\n          - {name: image",
            "operator: Exists, values: [a]}]}}\n          - {name: image",
            "spec.resources[1].templateRef.options[0].selector.matchFields[0].values",
            "takes no values",
        ),
        (
            "spec.source.git,",
            "spec.sorce.git,",
            "spec.resources[1].templateRef.options[0].selector.matchFields[0].key",
            "a Workload has no spec.sorce; did you mean source?",
        ),
        (
            "spec.source.git,",
            "workload.spec.source.git.branch,",
            "spec.resources[1].templateRef.options[0].selector.matchFields[0].key",
            "a Workload has no spec.source.git.branch",
        ),
        (
            "spec.source.git,",
            "status.ready,",
            "spec.resources[1].templateRef.options[0].selector.matchFields[0].key",
            "status is not read of a Workload",
        ),
        (
            "spec.source.git,",
            "'spec.source[',",
            "spec.resources[1].templateRef.options[0].selector.matchFields[0].key",
            "unterminated array",
        ),
        ("resource: source}", "resource: sorce}", "spec.resources[0].sources[0].resource", "did you mean source?"),
        ("resource: source}", "resource: image}", "spec.resources[0].sources[0].resource", "takes its own output"),
        (
            "configs: [{name: config, resource: config}]",
            "configs: [{name: config, resource: image}]",
            "spec.resources[3].configs[0].resource",
            "resource image is of a ClusterImageTemplate; configs takes the output of a ClusterConfigTemplate",
        ),
        (
            "- {name: image, selector",
            "- {passThrough: other, selector",
            "spec.resources[1].templateRef.options[1].passThrough",
            "there is no input other",
        ),
        ("name: push\n", "name: image\n", "spec.resources[3].name", "there is another resource image"),
        (
            "    - name: push\n",
            "    - name: push\n      params: [{name: p}]\n",
            "spec.resources[3].params[0]",
            "exactly one of value and default",
        ),
    ],
)
def test_a_problem_of_a_blueprint_names_its_field(before: str, after: str, field: str, said: str) -> None:
    assert before in CHAIN
    problems = {problem.field: problem.said for problem in blueprint_problems(chain(CHAIN.replace(before, after, 1)))}
    assert field in problems
    assert said in problems[field]


@pytest.mark.parametrize(
    ("before", "after", "field", "said"),
    [
        ("      deployment: {resource: source}\n", "", "spec.resources[1].deployment", "passes on its input"),
        ("{resource: source}", "{resource: nothing}", "spec.resources[1].deployment.resource", "there is no resource"),
        ("deliverable.spec", "workload.spec", "spec.selectorMatchFields[0].key", "workload is not read"),
    ],
)
def test_a_problem_of_a_delivery_names_its_field(before: str, after: str, field: str, said: str) -> None:
    found = blueprint_problems(chain(DELIVERY.replace(before, after, 1), delivery=True))
    problems = {problem.field: problem.said for problem in found}
    assert said in problems[field]


def test_a_cycle_is_a_problem_of_its_first_resource() -> None:
    text = CHAIN.replace("    - name: source\n", "    - name: source\n      configs: [{name: c, resource: config}]\n")
    problems = [problem for problem in blueprint_problems(chain(text)) if "wait for each other" in problem.message]
    assert [problem.field for problem in problems] == ["spec.resources[0]"]


def test_an_option_that_is_never_chosen_is_a_warning() -> None:
    text = CHAIN.replace("selector: {matchFields: [{key: spec.source.image, operator: Exists}]}", "selector: {}")
    assert list(blueprint_problems(chain(text))) == []
    (warning,) = blueprint_warnings(chain(text))
    assert warning.field == "spec.resources[1].templateRef.options[1].selector"


def test_a_requirement_with_an_operator_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="operator"):
        FieldRequirement.model_validate({"key": "spec", "operator": "Equals"})
