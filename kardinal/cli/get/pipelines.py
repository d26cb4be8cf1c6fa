"""`kardinal get pipelines`."""

from __future__ import annotations

from collections.abc import Iterable

import click

from kardinal.api import Bundle, Pipeline
from kardinal.api.image import bundle_versions
from kardinal.api.names import LABEL_PIPELINE, freeze_name
from kardinal.cli.output import age, one_line, print_documents, print_table, state_text
from kardinal.cli.session import TABLES, Session, cluster_command, newest_first, table_option
from kardinal.objects import BUNDLE, PIPELINE, POLICY_GATE

__all__ = ["pipelines"]


@click.command()
@click.argument("name", required=False)
@table_option
@cluster_command
async def pipelines(session: Session, *, name: str | None, output: str) -> None:
    """List Pipelines with the Bundle that is verified in each environment."""
    if name is not None:
        await session.pipeline(name)
    found = (await session.client.list(PIPELINE, session.namespace)).items
    found = [item for item in found if name in (None, item["metadata"]["name"])]
    if output not in TABLES:
        print_documents(found, output)
        return
    bundles = [Bundle.model_validate(item) for item in (await session.client.list(BUNDLE, session.namespace)).items]
    gates = await session.client.list(POLICY_GATE, session.namespace)
    present = {gate["metadata"]["name"] for gate in gates.items}
    wide = output == "wide"
    rows: list[list[str]] = []
    for pipeline in map(Pipeline.model_validate, found):
        ready = pipeline.status.condition("Ready")
        paused = " (paused)" if freeze_name(pipeline.metadata.name) in present else ""
        own = [bundle for bundle in newest_first(bundles) if _belongs(bundle, pipeline)]
        rows.append(
            [
                f"{pipeline.metadata.name}{paused}",
                state_text(ready.status if ready else "Unknown"),
                "  ".join(f"{env.name}={_verified_version(own, env.name)}" for env in pipeline.spec.environments),
                age(pipeline.metadata.creation_timestamp),
                *([_message(pipeline)] if wide else []),
            ]
        )
    print_table(
        ["PIPELINE", "READY", "VERIFIED", "AGE", *(["MESSAGE"] if wide else [])],
        rows,
        empty=f"No Pipelines in namespace {session.namespace}. Create one: kardinal init -f kardinal.yaml",
        prose=("VERIFIED", "MESSAGE"),
    )


def _message(pipeline: Pipeline) -> str:
    """Return what is wrong with a Pipeline, or that nothing is."""
    found = [pipeline.status.condition(name) for name in ("Ready", "RepositoryReady", "Ignored", "SharedPath")]
    said = [each for each in found if each is not None and each.message]
    wrong = [each for each in said if each.status == "False" or each.type in ("Ignored", "SharedPath")]
    return one_line("; ".join(each.message for each in wrong or said[:1]))


def _belongs(bundle: Bundle, pipeline: Pipeline) -> bool:
    name = bundle.status.pipeline or bundle.metadata.labels.get(LABEL_PIPELINE)
    return name == pipeline.metadata.name


def _verified_version(bundles: Iterable[Bundle], environment: str) -> str:
    """Return the version that was verified last in an environment; a dash when none was."""
    verified = [
        (entry.verified_at, bundle)
        for bundle in bundles
        if (entry := bundle.status.environments.get(environment)) and entry.state == "Verified" and entry.verified_at
    ]
    if not verified:
        return "-"
    return bundle_versions(max(verified, key=lambda pair: pair[0])[1].spec.artifacts)
