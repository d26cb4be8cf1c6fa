"""`kardinal init`: create a Pipeline from a description of eight lines, or print one for an existing repository.

With `--mode graph`, it prints the Graph that a Pipeline would be translated to.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, Literal

import click
from click.core import ParameterSource
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from kardinal.cli.errors import CommandError
from kardinal.cli.files import read_file
from kardinal.cli.guesses import may_be_production, provider_of
from kardinal.cli.init_graph import print_graph
from kardinal.cli.manifests import ManifestError, read_manifests
from kardinal.cli.output import print_value, say
from kardinal.cli.propose import print_proposals
from kardinal.cli.session import Session, chosen_namespace, cluster_command, cluster_options
from kardinal.extensions import load_extensions
from kardinal.kube import AlreadyExists
from kardinal.models.base import DnsLabel, Name, Url
from kardinal.objects.suggestions import nearest
from kardinal.promotion.api import Pipeline, PolicyGate
from kardinal.promotion.api.names import LABEL_BUNDLE
from kardinal.promotion.api.pipeline import ProviderName
from kardinal.promotion.kinds import PIPELINE, POLICY_GATE
from kardinal.promotion.policy.binding import places_of
from kardinal.promotion.policy.matching import collect
from kardinal.promotion.translation import Features
from kardinal.promotion.translation.translate import validate
from kardinal.tree.repository_url import InvalidRepositoryURL

__all__ = ["init"]

DEFAULT_FILE = Path("kardinal.yaml")
EXAMPLE = """\
app: my-app
image: ghcr.io/acme/my-app
git:
  url: https://github.com/acme/gitops
  secret: git-credentials
environments: [dev, staging, prod]
prodApproval: pr-review
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
    prod_approval: Literal["auto", "pr-review"] = "pr-review"
    """The approval of the last environment, and of each environment whose name may mean production.

    Defaults to `pr-review`. The other environments have `auto`.
    """


@click.command()
@click.option(
    "--from",
    "source",
    metavar="PATH|URL|PIPELINE",
    help="Read a GitOps repository, and print a Pipeline for it; needs no cluster. With --mode graph, read a Pipeline.",
)
@click.option(
    "--mode",
    type=click.Choice(["pipeline", "graph"]),
    default="pipeline",
    show_default=True,
    help="graph: print the Graph of a Bundle with intent.graph: manual, to be changed and created.",
)
@click.option("--bundle", metavar="NAME", help="With --mode graph: the Bundle; default: the newest that waits for one.")
@click.option(
    "--account",
    metavar="NAME",
    default="promoter",
    show_default=True,
    help="With --mode graph: the ServiceAccount that the Graph names.",
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
    mode: str,
    bundle: str | None,
    account: str,
    path: Path,
    policy_namespace: str,
    output: str | None,
    **where: Any,
) -> None:
    """Create a Pipeline from a short description, or print one for a repository.

    With --mode graph, print the Graph that a Pipeline would be translated to for a Bundle.
    """
    if mode == "graph":
        if source is None:
            raise click.UsageError("--mode graph needs the name of a Pipeline: --from PIPELINE")
        print_graph(
            pipeline=source,
            bundle=bundle,
            account=account,
            policy_namespace=policy_namespace,
            output=output or "yaml",
            **where,
        )
        return
    if source is not None:
        if click.get_current_context().get_parameter_source("path") is not ParameterSource.DEFAULT:
            raise click.UsageError("--from and --file exclude each other")
        print_proposals(source, where["namespace"] or "default")
        return
    config = _load(path)
    if output:
        pipeline = _pipeline(config, asyncio.run(chosen_namespace(**where)))
        _check(pipeline, path)
        print_value(pipeline, output)
        return
    _create(path=path, config=config, policy_namespace=policy_namespace, **where)


@cluster_command
async def _create(session: Session, *, path: Path, config: InitConfig, policy_namespace: str) -> None:
    pipeline = _pipeline(config, session.namespace)
    _check(pipeline, path)
    try:
        await session.client.create(PIPELINE, pipeline, field_manager="kardinal-cli")
    except AlreadyExists as error:
        raise CommandError(
            f"Pipeline {config.app} exists already in namespace {session.namespace}",
            remedy=f"Change it: kubectl edit pipeline {config.app}, or print this one: kardinal init -f {path} -o yaml",
        ) from error
    names = ", ".join(config.environments)
    say(f'Pipeline "{config.app}" created ({len(config.environments)} environments: {names})')
    gates = sorted(await _org_gates(session, policy_namespace, Pipeline.model_validate(pipeline)))
    if gates:
        say(f"  {len(gates)} org PolicyGates will be injected: {', '.join(gates)}")
    say(f"\nNext: Add to your CI:\n  kardinal create bundle {config.app} --image {config.image}:$TAG")


def _load(path: Path) -> InitConfig:
    if not path.exists():
        raise CommandError(f"there is no file {path}", remedy=f"Write one like this:\n\n{EXAMPLE}")
    try:
        documents = [manifest.body for manifest in read_manifests(read_file(path))]
    except ManifestError as error:
        raise CommandError(f"{path} is not YAML (line {error.line}): {error}") from None
    if len(documents) > 1:
        raise CommandError(f"{path} has {len(documents)} documents", remedy="Describe one Pipeline in a file.")
    try:
        return InitConfig.model_validate(documents[0] if documents else None)
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


def _provider(config: InitConfig) -> ProviderName:
    """Return the provider: `git.provider`, else the provider of the host, else `git`.

    Raises `CommandError` instead of returning `git` if `prodApproval` needs pull requests.
    """
    provider = config.git.provider or provider_of(config.git.url)
    if provider is None and config.prod_approval == "pr-review":
        raise CommandError(
            "git.provider: the name of the host does not tell it, and prodApproval: pr-review needs pull requests",
            remedy="Set it to github, gitlab, gitea or forgejo; or set prodApproval: auto to push to plain git",
        )
    return provider or "git"


def _pipeline(config: InitConfig, namespace: str) -> dict[str, Any]:
    git: dict[str, Any] = {
        "url": config.git.url,
        "branch": config.git.branch,
        "provider": _provider(config),
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
                    "approval": config.prod_approval if name == last or may_be_production(name) else "auto",
                }
                for name in config.environments
            ],
        },
    }


def _check(pipeline: dict[str, Any], path: Path) -> None:
    """Raise `CommandError` if the Pipeline is invalid, with all problems."""
    try:
        made = Pipeline.model_validate(pipeline)
    except ValidationError as error:
        problems = [_problem(item["loc"], item["type"], item["msg"]) for item in error.errors()]
    else:
        features = Features(registry=load_extensions().registry, allow_local_repositories=True)
        problems = [
            f"{each.field}: " + "; ".join(part for part in (each.message, each.remedy) if part)
            for each in validate(made, features=features)
        ]
    if problems:
        raise CommandError(f"{path} describes a Pipeline that cannot promote:\n  " + "\n  ".join(problems))


async def _org_gates(session: Session, policy_namespace: str, made: Pipeline) -> set[str]:
    """Return the names of the org gates that bind an environment of a Pipeline; none for an invalid repository URL."""
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
