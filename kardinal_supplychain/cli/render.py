"""`kardinal render`: show what a blueprint would stamp for an owner, from files alone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any, Final

import click
import yaml
from pydantic import ValidationError

from kardinal.bounded.documents import NotJson, OverLimit, decode
from kardinal.bounded.limits import JsonLimits
from kardinal.cli.errors import CommandError
from kardinal.cli.files import files_below, read_file
from kardinal.cli.manifests import Manifest, ManifestError, read_manifests
from kardinal.cli.output import print_value, say
from kardinal.models.base import Resource
from kardinal.objects import JsonObject
from kardinal.objects.text import escaped
from kardinal_supplychain.api.blueprints import ClusterDelivery, ClusterSupplyChain
from kardinal_supplychain.api.kinds import BLUEPRINT_OF, TEMPLATES, WORKLOAD
from kardinal_supplychain.api.owners import Deliverable, Workload
from kardinal_supplychain.api.templates import (
    ClusterConfigTemplate,
    ClusterDeploymentTemplate,
    ClusterImageTemplate,
    ClusterSourceTemplate,
    ClusterTemplate,
    TemplateSpec,
)
from kardinal_supplychain.blueprints.select import OwnerSelector, judge, winners
from kardinal_supplychain.blueprints.validate import blueprint_problems
from kardinal_supplychain.realize.conditions import matched_several, not_matched, words_of
from kardinal_supplychain.realize.inputs import OUTPUTS_OF
from kardinal_supplychain.realize.offline import RenderedResource, render_owner
from kardinal_supplychain.realize.outputs import Outputs
from kardinal_supplychain.ytt import Ytt

__all__ = ["render"]

Blueprint = ClusterSupplyChain | ClusterDelivery
Template = (
    ClusterSourceTemplate | ClusterImageTemplate | ClusterConfigTemplate | ClusterDeploymentTemplate | ClusterTemplate
)

_MODELS: Final[Mapping[str, type[Blueprint | Template | Workload | Deliverable]]] = {
    model.resource.kind: model
    for model in (
        ClusterSupplyChain,
        ClusterDelivery,
        ClusterSourceTemplate,
        ClusterImageTemplate,
        ClusterConfigTemplate,
        ClusterDeploymentTemplate,
        ClusterTemplate,
        Workload,
        Deliverable,
    )
}
_OUTPUT: Final = re.compile(r"(?P<resource>[^=]+)\.(?P<name>[a-z]+)=(?P<value>.*)", re.DOTALL)
_NAMES: Final = sorted({name for names in OUTPUTS_OF.values() for name in names})
_VALUE: Final = JsonLimits(size=1 << 20)
_NAMESPACE: Final = "default"


@click.command()
@click.option(
    "-f",
    "--file",
    "paths",
    type=click.Path(exists=True, path_type=Path),
    multiple=True,
    required=True,
    help="A file with blueprints and templates, or a directory of such files. May be repeated.",
)
@click.option(
    "-w",
    "--workload",
    "owner_path",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    required=True,
    help="A file with one Workload or Deliverable.",
)
@click.option(
    "--output",
    "given",
    metavar="RESOURCE.NAME=VALUE",
    multiple=True,
    help="An output that a cluster would have, such as source.url=https://… May be repeated.",
)
@click.option("-o", "format_", type=click.Choice(("yaml", "json")), default="yaml", help="Defaults to yaml.")
def render(paths: tuple[Path, ...], owner_path: Path, given: tuple[str, ...], format_: str) -> None:
    """Show what a supply chain would stamp for a Workload, and need no cluster.

    The blueprint is chosen as a controller would choose it. A resource whose inputs come from a cluster needs them by
    --output; its value is text, or JSON if it begins with {, [ or a quote. Resources that wait for one are named on
    standard error. Exits with 1 where something cannot be stamped. Templates of ytt need ytt on PATH.
    """
    outputs = _outputs(given)
    found = [each for path in paths for each in _resources(path)]
    owners = [each for each in _resources(owner_path) if isinstance(each[1], Workload | Deliverable)]
    if len(owners) != 1:
        raise CommandError(f"{owner_path} has {len(owners)} Workloads and Deliverables, and one is needed")
    document, owner = owners[0]
    assert isinstance(owner, Workload | Deliverable)  # noqa: S101 - for mypy
    document["metadata"] = {"namespace": _NAMESPACE, **document["metadata"]}
    blueprint = _blueprint(document, [each for _, each in found])
    templates = {(each.resource.kind, each.metadata.name): each for _, each in found if each.resource.kind in TEMPLATES}

    def find(kind: str, name: str) -> TemplateSpec | None:
        spec = getattr(templates.get((kind, name)), "spec", None)
        return spec if isinstance(spec, TemplateSpec) else None

    _check_outputs(outputs, blueprint)
    with closing(Ytt()) as ytt:
        rendered = render_owner(document, owner.spec, blueprint, find=find, outputs=outputs, ytt=ytt.rendered)
    if format_ == "json":
        print_value({"blueprint": _name(blueprint), "resources": list(map(_document, rendered))}, "json")
    else:
        _print_objects(rendered)
    for resource in rendered:
        if resource.waits_for:
            options = " ".join(f"--output {name}=…" for name in resource.waits_for)
            say(escaped(f"resource {resource.name} waits for {', '.join(resource.waits_for)}: add {options}"), err=True)
        if resource.error:
            say(escaped(f"resource {resource.name}: {resource.error}"), err=True)
    if any(resource.error for resource in rendered):
        raise click.exceptions.Exit(1)


def _resources(path: Path) -> Iterator[tuple[JsonObject, Resource]]:
    """Yield the documents of a file or directory with their resources. Raises `CommandError` for one that is wrong."""
    for file in files_below(path) if path.is_dir() else [path]:
        try:
            for manifest in read_manifests(read_file(file)):
                model = _MODELS.get(manifest.kind[1])
                if model is not None and manifest.kind[0] == WORKLOAD.api_version:
                    document = _plain(manifest.body)
                    yield document, _validated(model, document, manifest, file)
        except ManifestError as error:
            raise CommandError(f"{file}:{error.line}: {error}", remedy="Repair the YAML.") from None


def _validated(model: type[Resource], document: JsonObject, manifest: Manifest, file: Path) -> Resource:
    try:
        resource = model.model_validate(document)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in detail["loc"])
        field = place.removeprefix(".")
        raise CommandError(
            f"{file}:{manifest.line(field)}: {manifest.kind[1]}/{manifest.name} {field}: {detail['msg']}",
            remedy=f"kardinal lint -f {file} names all that is wrong.",
        ) from None
    if not resource.metadata.name:
        raise CommandError(f"{file}:{manifest.line('metadata')}: {manifest.kind[1]} has no metadata.name")
    return resource


def _plain(value: Any) -> Any:
    """Return a value of YAML as JSON: a time is its text, and a key is text."""
    match value:
        case dict():
            return {key if isinstance(key, str) else str(key): _plain(inner) for key, inner in value.items()}
        case list():
            return list(map(_plain, value))
        case date():
            return value.isoformat()
        case bytes():
            raise CommandError("a value is binary, which no JSON holds", remedy="Write it as text in base64.")
        case _:
            return value


def _outputs(given: Iterable[str]) -> dict[str, Outputs]:
    outputs = dict[str, dict[str, Any]]()
    for text in given:
        found = _OUTPUT.fullmatch(text)
        if found is None or found["name"] not in _NAMES:
            names = ", ".join(_NAMES)
            raise click.UsageError(f"--output {text}: write RESOURCE.NAME=VALUE, where NAME is one of {names}")
        outputs.setdefault(found["resource"], {})[found["name"]] = _value(found["value"])
    return dict(outputs)


def _value(text: str) -> Any:
    if not text.startswith(("{", "[", '"')):
        return text
    try:
        return decode(text.encode(errors="surrogateescape"), _VALUE)
    except (NotJson, OverLimit) as error:
        raise click.UsageError(f"--output: a value that begins with {text[0]} is JSON, and {error}") from None


def _blueprint(owner: JsonObject, found: Sequence[Resource]) -> Blueprint:
    """Return the blueprint that wins for an owner. Raises `CommandError` if none or several do, or it is wrong."""
    kind = BLUEPRINT_OF[owner["kind"]].kind
    words = words_of(owner["kind"])
    candidates = [each for each in found if isinstance(each, Blueprint) and each.resource.kind == kind]
    judged = [judge(OwnerSelector.of_blueprint(each.spec), owner) for each in candidates]
    won = winners(judged)
    if len(won) > 1:
        names = ", ".join(candidates[index].metadata.name for index in won)
        raise CommandError(f"{matched_several(words).message}: {names} match with the same number of requirements")
    if not won:
        why = "; ".join(
            f"{each.metadata.name}: {verdict.failing.requirement} does not hold"
            for each, verdict in zip(candidates, judged, strict=True)
            if verdict.failing
        )
        message = not_matched(words, owner["metadata"].get("labels") or {}).message
        raise CommandError(message, remedy=why or f"Name a file with a {kind} by -f.")
    blueprint = candidates[won[0]]
    problems = list(blueprint_problems(blueprint))
    if problems:
        raise CommandError(f"{kind}/{blueprint.metadata.name} {'; '.join(map(str, problems))}")
    return blueprint


def _check_outputs(outputs: Mapping[str, Outputs], blueprint: Blueprint) -> None:
    for resource, values in outputs.items():
        found = next((each for each in blueprint.spec.resources if each.name == resource), None)
        if found is None:
            names = ", ".join(each.name for each in blueprint.spec.resources)
            raise click.UsageError(f"--output {resource}: {_name(blueprint)} has the resources {names}")
        known = OUTPUTS_OF[found.template_ref.kind]
        for name in values:
            if name not in known:
                has = f"has {' and '.join(known)}" if known else "has no output"
                raise click.UsageError(f"--output {resource}.{name}: a {found.template_ref.kind} {has}")


def _name(blueprint: Blueprint) -> str:
    return f"{blueprint.resource.kind}/{blueprint.metadata.name}"


def _document(resource: RenderedResource) -> JsonObject:
    document = {
        "name": resource.name,
        "templateRef": {"kind": resource.template_kind, "name": resource.template} if resource.template else None,
        "passThrough": resource.passes,
        "params": {name: {"value": each.value, "from": each.layer} for name, each in resource.params.items()},
        "object": resource.object,
        "waitsFor": list(resource.waits_for),
        "error": resource.error,
    }
    return {key: value for key, value in document.items() if value}


def _print_objects(rendered: Iterable[RenderedResource]) -> None:
    for resource in rendered:
        if resource.object is not None:
            say("---")
            say(escaped(f"# {resource.name}: {resource.template_kind}/{resource.template}"))
            say(yaml.dump(resource.object, Dumper=yaml.CSafeDumper, sort_keys=False), nl=False)
        elif resource.passes:
            say("---")
            say(escaped(f"# {resource.name}: passes {resource.passes} through"))
