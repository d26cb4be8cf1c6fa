"""kardinal and Flux on a real control plane: what is promoted is committed, and what is committed is applied.

The controller is the program that is shipped, with the rights of deploy/ and no others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hack.flux.assets import DEFINITION, FLUX
from hack.kube.assets import obtain
from kardinal.objects import JsonObject
from tests.gitops.cluster import Cluster, definitions_of, running_cluster, running_controller
from tests.gitops.flux import NAMESPACE, source_definitions, started_flux
from tests.gitops.sources import Sources, started_sources
from tests.support.real import RealServer
from tests.support.target import DEFINITIONS

__all__ = ["Installation", "running_installation", "running_kardinal"]


class Installation:
    """The cluster in which all run, and the source of Flux."""

    def __init__(self, cluster: Cluster, sources: Sources, directory: Path) -> None:
        self.cluster = cluster
        self.sources = sources
        self.directory = directory


@contextmanager
def running_installation(
    directory: Path, *, definitions: Iterable[Path] = (), made: Iterable[JsonObject] = ()
) -> Iterator[Installation]:
    """Yield an installation in a cluster that serves more kinds; the output of its programs is in `directory`."""
    paths = [*DEFINITIONS.glob("*.yaml"), obtain(FLUX) / DEFINITION, *definitions]
    served = definitions_of(directory / "definitions", paths, *source_definitions(), *made)
    with (
        running_cluster(served, namespaces=(NAMESPACE,)) as cluster,
        running_kardinal(cluster, directory),
        started_sources(cluster) as sources,
        started_flux(cluster, directory),
    ):
        yield Installation(cluster, sources, directory)


@contextmanager
def running_kardinal(cluster: Cluster, directory: Path) -> Iterator[None]:
    """Run the controller for the length of a block; its output is in `directory`."""
    identities = directory / "identities"
    identities.mkdir()
    server = RealServer(cluster.kubeconfig, identities)
    command = [
        str(Path(sys.executable).with_name("kardinal-controller")),
        f"--kubeconfig={server.kubeconfig_for('controller')}",
        f"--git-cache-dir={directory / 'mirrors'}",
        "--allow-local-repositories",
        "--quote-namespaces=*",
        "--api-bind-address=127.0.0.1:0",
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
    ]
    try:
        with running_controller(cluster, command, directory / "kardinal.log"):
            yield
    finally:
        server.close()
