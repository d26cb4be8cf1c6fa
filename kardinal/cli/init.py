"""`kardinal init`: a Pipeline from eight lines, or from a repository that is there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import click
import yaml
from click.core import ParameterSource
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from kardinal.api import PIPELINE, POLICY_GATE, Pipeline, PolicyGate
from kardinal.api.base import DnsLabel, Name, Url
from kardinal.api.names import LABEL_BUNDLE
from kardinal.api.pipeline import ProviderName
from kardinal.api.repository_url import InvalidRepositoryURL, is_local_spelling
from kardinal.cli.errors import CommandError
from kardinal.cli.output import print_value
from kardinal.cli.propose import print_proposals
from kardinal.cli.session import Session, cluster_command, cluster_options
from kardinal.kube import AlreadyExists
from kardinal.objects.suggestions import nearest
from kardinal.policy.binding import places_of
from kardinal.policy.matching import collect

__all__ = ["init"]

DEFAULT_FILE = Path("kardinal.yaml")
EXAMPLE = """\
app: my-app
image: ghcr.io/acme/my-app
git:
  url: https://github.com/acme/gitops
  secret: git-credentials
environments: [dev, staging, prod]
prodApproval: auto
"""


class _Strict(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", frozen=True)


class GitConfig(_Strict):
    url: Url
    branch: str = "main"
    provider: ProviderName | None = None
    secret: Name | None = None


class InitConfig(_Strict):
    app: Name
    image: str
    git: GitConfig
    environments: Annotated[tuple[DnsLabel, ...], Field(min_length=1)] = ("dev", "staging", "prod")
    prod_approval: Literal["auto", "pr-review"] = "auto"


@click.command()
@click.option(
    "--from",
    "source",
    metavar="PATH|URL",
    help="Read a GitOps repository, and print a Pipeline that fits it; needs no cluster.",
)
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    default=DEFAULT_FILE,
    show_default=True,
    help="The short description of the Pipeline.",
)
@click.option("--policy-namespace", default="platform-policies", show_default=True, help="Where org gates live.")
@click.option("-o", "--output", type=click.Choice(["json", "yaml"]), help="Print the Pipeline and create nothing.")
@cluster_options
def init(
    *,
    source: str | None,
    path: Path,
    policy_namespace: str,
    output: str | None,
    **where: Any,
) -> None:
    """Create a Pipeline from a short description, or print one for a repository."""
    if source is None:
        _create(path=path, policy_namespace=policy_namespace, output=output, **where)
        return
    if click.get_current_context().get_parameter_source("path") is not ParameterSource.DEFAULT:
        raise click.UsageError("--from and --file exclude each other")
    print_proposals(source, where["namespace"] or "default")


@cluster_command
async def _create(session: Session, *, path: Path, policy_namespace: str, output: str | None) -> None:
    config = _load(path)
    pipeline = _pipeline(config, session.namespace)
    if output:
        print_value(pipeline, output)
        return
    try:
        await session.client.create(PIPELINE, pipeline, field_manager="kardinal-cli")
    except AlreadyExists as error:
        raise CommandError(
            f"Pipeline {config.app} exists already in namespace {session.namespace}",
            remedy=f"Change it: kubectl edit pipeline {config.app}, or print this one: kardinal init -f {path} -o yaml",
        ) from error
    names = ", ".join(config.environments)
    click.echo(f'Pipeline "{config.app}" created ({len(config.environments)} environments: {names})')
    gates = sorted(await _org_gates(session, policy_namespace, Pipeline.model_validate(pipeline)))
    if gates:
        click.echo(f"  {len(gates)} org PolicyGates will be injected: {', '.join(gates)}")
    click.echo(f"\nNext: Add to your CI:\n  kardinal create bundle {config.app} --image {config.image}:$TAG")


def _load(path: Path) -> InitConfig:
    try:
        document = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}", remedy=f"Write one like this:\n\n{EXAMPLE}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        raise CommandError(f"{path} is not YAML{where}") from None
    try:
        return InitConfig.model_validate(document)
    except ValidationError as error:
        problems = "\n  ".join(_problem(item["loc"], item["type"], item["msg"]) for item in error.errors())
        raise CommandError(f"{path} does not describe a Pipeline:\n  {problems}") from None


def _problem(location: tuple[int | str, ...], kind: str, message: str) -> str:
    path = ".".join(str(part) for part in location) or "the document"
    if kind != "extra_forbidden":
        return f"{path}: {message}"
    model = GitConfig if location[0] == "git" else InitConfig
    known = [field.alias or name for name, field in model.model_fields.items()]
    near = nearest(str(location[-1]), known)
    return f"{path}: unknown field" + (f"; did you mean {near}?" if near else f"; known: {', '.join(known)}")


def _pipeline(config: InitConfig, namespace: str) -> dict[str, Any]:
    local = is_local_spelling(config.git.url)
    git: dict[str, Any] = {
        "url": config.git.url,
        "branch": config.git.branch,
        "provider": config.git.provider or ("local" if local else "git"),
    }
    if config.git.secret:
        git["secretRef"] = {"name": config.git.secret}
    last = config.environments[-1]
    return {
        "apiVersion": PIPELINE.api_version,
        "kind": PIPELINE.kind,
        "metadata": {"name": config.app, "namespace": namespace},
        "spec": {
            "git": git,
            "environments": [
                {
                    "name": name,
                    "path": f"environments/{name}",
                    "approval": config.prod_approval if name == last else "auto",
                }
                for name in config.environments
            ],
        },
    }


async def _org_gates(session: Session, policy_namespace: str, made: Pipeline) -> set[str]:
    """Return the names of the org gates that hold any environment of a Pipeline; none where its URL names nothing."""
    templates = await session.client.list(POLICY_GATE, policy_namespace, labels=f"!{LABEL_BUNDLE}")
    gates = collect(
        map(PolicyGate.model_validate, templates.items),
        pipeline=made.metadata.name,
        namespace=made.metadata.namespace,
        policy_namespaces=(policy_namespace,),
    )
    try:
        places = places_of(made)
    except InvalidRepositoryURL:
        return set()
    return {
        gate.name
        for gate in gates
        if gate.scope == "org" and not gate.permits_skip and any(map(gate.applies_to, places))
    }
