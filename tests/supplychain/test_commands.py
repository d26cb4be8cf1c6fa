"""`kardinal lint` and `kardinal render` on the kinds of supply chains, without a cluster."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from hack.docs.supply_chains import reference
from kardinal_supplychain.ytt import INSTALL_YTT
from tests.cli.conftest import Finished
from tests.cli.in_process import InProcess

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "supply-chain"
URL = "source.url=https://x/a.tgz"
REVISION = "source.revision=main@sha1:1"
IMAGE = "image.image=registry.example.com/apps/shop@sha256:1"


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Return a copy of the example, to break."""
    for path in EXAMPLE.glob("*.yaml"):
        (tmp_path / path.name).write_text(path.read_text())
    return tmp_path


def run(directory: Path, *arguments: str) -> Finished:
    return InProcess(Path("/nonexistent"), directory).run(*arguments)


def change(path: Path, before: str, after: str) -> None:
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after, 1))


def render(directory: Path, *outputs: str, arguments: tuple[str, ...] = ()) -> Finished:
    options = [option for output in outputs for option in ("--output", output)]
    return run(directory, "render", "-f", ".", "-w", "workload.yaml", *options, *arguments)


def test_the_example_is_fine(directory: Path) -> None:
    done = run(directory, "lint", "-f", ".")
    assert (done.code, done.out, done.err) == (0, "6 resources are fine\n", "")


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        (
            "supply-chain.yaml",
            "  selector:\n    type: web",
            "  selector:\n    matchLabels:\n      type: web",
            "supply-chain.yaml:8: ClusterSupplyChain/web spec.selector.matchLabels: a blueprint has its matchLabels "
            "elsewhere; write them in spec.selector\n",
        ),
        (
            "supply-chain.yaml",
            "  selector:\n    type: web",
            "  selector:\n    matchFields:\n      - {key: spec.source, operator: Exists}",
            "write them in spec.selectorMatchFields\n",
        ),
        ("supply-chain.yaml", "  resources:", "  resource:", "spec.resource: unknown field; did you mean resources?"),
        (
            "supply-chain.yaml",
            "          resource: source",
            "          resource: sorce",
            "supply-chain.yaml:33: ClusterSupplyChain/web spec.resources[1].sources[0].resource: there is no resource "
            "sorce; did you mean source?",
        ),
        ("supply-chain.yaml", "        name: git", "        name: git\n        options: []", "either name or options"),
        (
            "supply-chain.yaml",
            "ClusterSupplyChain",
            "ClusterSupplyChian",
            "v1alpha1; did you mean carto.run/v1alpha1",
        ),
        ("supply-chain.yaml", "v1alpha1", "v1beta1", "did you mean carto.run/v1alpha1 ClusterSupplyChain?"),
        (
            "templates.yaml",
            "$(params.replicas)$",
            "$(parms.replicas)$",
            "templates.yaml:86: ClusterTemplate/deploy",
        ),
        ("templates.yaml", "urlPath: status", "urlPath: $(x)$.status", "templates.yaml:6: ClusterSourceTemplate/git"),
        ("templates.yaml", "  template:", "  ytt: 'a: 1'\n  template:", "either template or ytt"),
        (
            "workload.yaml",
            "git:",
            "got:",
            "workload.yaml:10: Workload/shop spec.source.got: unknown field; did",
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_and_the_remedy(
    directory: Path, file: str, before: str, after: str, said: str
) -> None:
    change(directory / file, before, after)
    done = run(directory, "lint", "-f", ".")
    assert done.code == 1
    assert said in done.err


def test_a_blueprint_with_the_selector_of_the_architecture_page_is_told_the_three_fields(directory: Path) -> None:
    """The page of Cartographer writes selectors in this form, which options have, and blueprints do not."""
    selector = """\
  selector:
    matchLabels:
      workload-type: web
    matchExpressions:
      - key: group
        operator: In
        values: ["internal", "public-facing"]
    matchFields:
      - key: workload.spec.source.git
        operator: Exists
"""
    change(directory / "supply-chain.yaml", "  selector:\n    type: web\n", selector)
    done = run(directory, "lint", "-f", "supply-chain.yaml")
    assert done.code == 1
    told = [line.partition(": ClusterSupplyChain/web ") for line in done.err.splitlines()]
    assert [(place, text.rpartition(" ")[2]) for place, _, text in told] == [
        ("supply-chain.yaml:8", "spec.selector"),
        ("supply-chain.yaml:10", "spec.selectorMatchExpressions"),
        ("supply-chain.yaml:14", "spec.selectorMatchFields"),
    ]


def test_a_selector_of_the_wrong_form_is_complained_about_once(directory: Path) -> None:
    change(directory / "supply-chain.yaml", "    type: web", "    matchLabels: {type: web}")
    done = run(directory, "lint", "-f", "supply-chain.yaml")
    assert len(done.err.splitlines()) == 1


def test_a_value_of_an_image_that_is_an_object_is_a_warning(directory: Path) -> None:
    change(directory / "templates.yaml", "$(images.image.image)$", "$(images.image)$")
    done = run(directory, "lint", "-f", ".")
    assert (done.code, done.out) == (0, "6 resources are fine, 1 warning\n")
    assert "warning: ClusterTemplate/deployment" in done.err
    assert "write $(images.image.image)$" in done.err


def test_a_run_template_without_spec_is_a_warning(directory: Path) -> None:
    head = "apiVersion: carto.run/v1alpha1\nkind: ClusterRunTemplate\nmetadata: {name: x}\nspec:\n"
    (directory / "run.yaml").write_text(head + "  template: {apiVersion: v1, kind: ConfigMap}\n")
    done = run(directory, "lint", "-f", "run.yaml")
    assert (done.code, done.out) == (0, "1 resource is fine, 1 warning\n")
    assert "has no spec" in done.err


def test_modules_of_supply_chains_are_loaded_for_their_files_only(tmp_path: Path) -> None:
    # In a process of its own, because others in this one may have loaded them.
    (tmp_path / "gate.yaml").write_text(
        "apiVersion: kardinal.io/v1alpha1\nkind: PolicyGate\nmetadata: {name: x}\nspec: {expression: 'true'}\n"
    )
    code = (
        "import sys; from kardinal.cli.main import main; main(sys.argv[1:], standalone_mode=False);"
        "print([name for name in sys.modules if name.startswith('kardinal_supplychain.api')])"
    )
    arguments = [sys.executable, "-P", "-c", code, "lint", "-f", "gate.yaml"]
    done = subprocess.run(
        arguments, cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, check=True, capture_output=True, text=True, timeout=30
    )
    assert done.stdout == "1 resource is fine\n[]\n"


def objects(done: Finished) -> list[dict[str, Any]]:
    assert done.code == 0, done.err
    return [each for each in yaml.safe_load_all(done.out) if each is not None]


def test_a_chain_is_rendered_as_far_as_its_outputs_are_given(directory: Path) -> None:
    first = render(directory)
    (source,) = objects(first)
    assert source["kind"] == "GitRepository"
    assert source["spec"]["ref"] == {"branch": "main"}
    assert "resource image waits for source.url, source.revision: add --output source.url=…" in first.err
    assert "resource app waits for image.image: add --output image.image=…" in first.err

    done = render(directory, URL, REVISION, IMAGE)
    source, image, app = objects(done)
    assert done.err == ""
    assert image["spec"]["tag"] == "registry.example.com/apps/my-team-shop"
    assert image["spec"]["source"]["blob"]["url"] == "https://x/a.tgz"
    assert app["spec"]["replicas"] == 3
    assert app["spec"]["template"]["spec"]["containers"][0]["image"] == "registry.example.com/apps/shop@sha256:1"
    assert {each["metadata"]["namespace"] for each in (source, image, app)} == {"my-team"}
    assert app["metadata"]["labels"]["carto.run/resource-name"] == "app"


def test_rendering_twice_prints_the_same(directory: Path) -> None:
    assert render(directory, URL, REVISION, IMAGE) == render(directory, URL, REVISION, IMAGE)


def test_json_says_where_each_param_comes_from(directory: Path) -> None:
    done = render(directory, URL, REVISION, arguments=("-o", "json"))
    document = json.loads(done.out)
    assert document["blueprint"] == "ClusterSupplyChain/web"
    resources = {each["name"]: each for each in document["resources"]}
    assert resources["image"]["templateRef"] == {"kind": "ClusterImageTemplate", "name": "kpack"}
    assert resources["image"]["params"]["registry"] == {"value": "registry.example.com/apps", "from": "blueprint"}
    assert resources["app"]["params"]["replicas"] == {"value": 3, "from": "owner"}
    assert resources["app"]["waitsFor"] == ["image.image"]
    assert "object" not in resources["app"]


def test_an_option_is_chosen_for_the_workload(directory: Path) -> None:
    change(directory / "workload.yaml", "  params:", "  build: {env: [{name: A, value: b}]}\n  params:")
    _, image = objects(render(directory, URL, REVISION))
    assert image["spec"]["build"] == {"env": [{"name": "A", "value": "b"}]}


def test_an_option_that_passes_an_input_through_stamps_nothing(directory: Path) -> None:
    change(directory / "supply-chain.yaml", "          - name: kpack-with-env", "          - passThrough: given")
    change(
        directory / "supply-chain.yaml",
        "      sources:",
        "      images: [{name: given, resource: prebuilt}]\n      sources:",
    )
    change(
        directory / "supply-chain.yaml",
        "  resources:",
        "  resources:\n    - name: prebuilt\n      templateRef: {kind: ClusterImageTemplate, name: kpack-with-env}",
    )
    change(directory / "workload.yaml", "  params:", "  build: {env: [{name: A, value: b}]}\n  params:")
    change(directory / "templates.yaml", "          url: $(sources.source.url)$", "          url: x")
    change(directory / "templates.yaml", "          url: $(sources.source.url)$", "          url: x")
    done = render(directory, URL, REVISION, "prebuilt.image=r/x@sha256:2")
    assert [each["kind"] for each in objects(done)] == ["Image", "GitRepository", "Deployment"]
    assert objects(done)[2]["spec"]["template"]["spec"]["containers"][0]["image"] == "r/x@sha256:2"
    assert "# image: passes given through" in done.out


@pytest.mark.parametrize(
    ("file", "before", "after", "said"),
    [
        ("workload.yaml", "type: web", "type: job", "map[type:job]\n  web: type = web does not hold\n"),
        ("workload.yaml", "  labels:\n    type: web\n", "", "workload has no labels"),
        ("workload.yaml", "kind: Workload", "kind: Deployment", "has 0 Workloads and Deliverables"),
        ("workload.yaml", "  name: shop\n", "", "has no metadata.name"),
        ("supply-chain.yaml", "resource: source", "resource: none", "there is no resource none"),
        ("templates.yaml", "$(workload.spec.source.git.url)$", "$(workload.spec.source.image.x)$", "resource source: "),
        ("templates.yaml", "  name: git\n", "  name: other\n", "there is no ClusterSourceTemplate git"),
        ("templates.yaml", "interval: 1m0s", "interval: !!binary aGk=", "binary"),
        (
            "templates.yaml",
            "  urlPath: status.artifact.url\n",
            "",
            "templates.yaml:5: ClusterSourceTemplate/git spec.urlP",
        ),
        ("templates.yaml", "kind: GitRepository", "kind: [", "Repair the YAML"),
    ],
)
def test_a_chain_that_cannot_be_rendered_says_why(
    directory: Path, file: str, before: str, after: str, said: str
) -> None:
    change(directory / file, before, after)
    done = render(directory)
    assert done.code == 1
    assert said in done.err


def test_two_chains_that_match_equally_are_refused(directory: Path) -> None:
    text = (directory / "supply-chain.yaml").read_text()
    (directory / "other.yaml").write_text(text.replace("name: web\n", "name: other\n", 1))
    done = render(directory)
    assert done.code == 1
    assert "workload may only match a single supply chain's selector: other, web" in done.err


def test_a_resource_that_fails_leaves_the_others_alone(directory: Path) -> None:
    change(directory / "templates.yaml", "$(params.registry)$", "$(params.absent)$")
    done = render(directory, URL, REVISION, IMAGE)
    assert done.code == 1
    assert [each["kind"] for each in yaml.safe_load_all(done.out)] == ["GitRepository", "Deployment"]
    assert "path [spec.tag]: jsonpath returned empty list: params.absent" in done.err


YTT = """\
  ytt: |
    #@ load("@ytt:data", "data")
    apiVersion: source.toolkit.fluxcd.io/v1
    kind: GitRepository
    metadata:
      name: #@ data.values.workload.metadata.name
    spec:
      url: #@ data.values.workload.spec.source.git.url
"""


def write_source_in_ytt(directory: Path) -> None:
    path = directory / "templates.yaml"
    source, _, others = path.read_text().partition("---\n")
    path.write_text(source.partition("  template:\n")[0] + YTT + "---\n" + others)


def test_template_of_ytt_is_rendered_where_ytt_is(
    directory: Path, real_ytt: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_source_in_ytt(directory)
    monkeypatch.setenv("PATH", str(real_ytt.parent))
    assert run(directory, "lint", "-f", ".").out == "6 resources are fine\n"
    done = render(directory, URL, REVISION, IMAGE)
    assert [each["kind"] for each in objects(done)] == ["GitRepository", "Image", "Deployment"]
    assert objects(done)[0]["spec"] == {"url": "https://git.example.com/my-team/shop"}
    assert objects(done)[0]["metadata"]["namespace"] == "my-team"


def test_template_of_ytt_says_how_to_get_it_where_it_is_missing(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_source_in_ytt(directory)
    monkeypatch.setenv("PATH", str(directory))
    linted = run(directory, "lint", "-f", ".")
    assert (linted.code, linted.out) == (0, "6 resources are fine, 1 warning\n")
    assert "warning: ClusterSourceTemplate/git spec.ytt: " in linted.err
    done = render(directory, URL, REVISION, IMAGE)
    assert done.code == 1
    assert [each["kind"] for each in yaml.safe_load_all(done.out)] == ["Image", "Deployment"]
    for told in (linted.err, done.err):
        assert INSTALL_YTT in told


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("source.url", "write RESOURCE.NAME=VALUE"),
        ("source.link=x", "where NAME is one of config, image, revision, url"),
        ("sorce.url=x", "has the resources source, image, app"),
        ("image.url=x", "a ClusterImageTemplate has image"),
        ("app.image=x", "a ClusterTemplate has no output"),
        ("source.url={", "it is not JSON"),
        ("source.url=" + "[" * 100, "nested deeper than 64 levels"),
    ],
)
def test_an_output_that_no_resource_has_is_a_wrong_call(directory: Path, output: str, said: str) -> None:
    done = render(directory, output)
    assert done.code == 2
    assert said in " ".join(done.err.split())


def test_templates_of_strangers_cost_a_bounded_time_and_an_error_with_the_path(directory: Path) -> None:
    change(directory / "templates.yaml", "interval: 1m0s", f"interval: '$({'[' * 10_000})$'")
    change(directory / "templates.yaml", "$(workload.spec.source.git.ref)$", "$(open")
    done = render(directory)
    assert done.code == 1
    assert "path [spec.interval]: a jsonpath has at most 1024 characters" in done.err


def test_the_reference_is_current() -> None:
    assert (ROOT / "docs" / "supply-chains-reference.md").read_text() == reference(), "run: make docs"
