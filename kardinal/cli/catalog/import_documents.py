"""`kardinal catalog import`: print the clusters and tenants of a Lieutenant as documents of kardinal."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click
import yaml

from kardinal.cli.catalog.lieutenant import fetch_documents
from kardinal.cli.files import read_file
from kardinal.cli.output import say

__all__ = ["import_documents"]


@click.command("import")
@click.option("--lieutenant", "url", required=True, help="URL of the API, such as https://api.syn.example.com.")
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the bearer token. Defaults to none.",
)
def import_documents(url: str, token_file: Path | None) -> None:
    """Print a CatalogTenant for each tenant, and a CatalogCluster for each cluster.

    The answer is what `kardinal catalog compile -f` and `kubectl apply -f` take. Secrets are not part of it: name those
    for the repositories in `secretRefs` of the tenants.
    """
    token = read_file(token_file).strip() if token_file else ""
    documents = asyncio.run(fetch_documents(url, token=token))
    say(yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True), nl=False)
