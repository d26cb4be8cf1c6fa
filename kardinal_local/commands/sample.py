"""`kardinal sample`: create a sample repository, and manifests for it to apply to `kardinal local up`."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml

from kardinal.cli.errors import CommandError
from kardinal.cli.output import say
from kardinal.clock import SystemClock
from kardinal.git import create_bare_repository
from kardinal_local import sample as data

__all__ = ["sample"]

_POLICY_NAMESPACE = "platform-policies"


@click.command()
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path), default=Path("kardinal-sample"))
def sample(directory: Path) -> None:
    """Make a GitOps repository with a Pipeline and gates for it, to try things with.

    DIRECTORY (default kardinal-sample) gets a bare repository with three environments of podinfo, pipeline.yaml and
    gates.yaml: a soak of seconds in staging, and a day of the week on which nothing goes to prod, which is not today.
    """
    if directory.exists() and any(directory.iterdir()):
        raise CommandError(f"{directory} is not empty", remedy="Name another directory: kardinal sample DIRECTORY")
    try:
        directory.mkdir(parents=True, exist_ok=True)
        repository = directory.resolve() / "gitops.git"
        create_bare_repository(
            repository, data.files(), message="Run podinfo in three environments", clock=SystemClock()
        )
        gates = data.org_gate(_POLICY_NAMESPACE), data.schedule_gate(_POLICY_NAMESPACE, now=datetime.now(UTC))
        (directory / "pipeline.yaml").write_text(_yaml(data.pipeline(repository.as_uri())))
        (directory / "gates.yaml").write_text(_yaml(*gates))
    except OSError as error:
        raise CommandError(f"{directory} cannot be written: {error.strerror}") from None
    say(f"{directory}/gitops.git      three environments of {data.APP}, which run {data.IMAGE}:{data.OLD_TAG}")
    say(f"{directory}/pipeline.yaml   dev, staging, and prod behind a pull request")
    for gate in gates:
        say(f"{directory}/gates.yaml      {gate['metadata']['name']}: {gate['spec']['message']}")
    say("\nNext, with `kardinal local up --simulate` running:")
    say(f"  kubectl apply -f {directory}")
    say(f"  kardinal create bundle {data.APP} --image {data.IMAGE}:{data.NEW_TAG}")
    say(f"  kardinal watch {data.APP}")


def _yaml(*documents: dict[str, Any]) -> str:
    return "---\n".join(yaml.dump(document, Dumper=yaml.CSafeDumper, sort_keys=False) for document in documents)
