"""What a control plane under test consists of: programs and their command lines.

Every flag that is not a default is in these lists, and nowhere else: the published list of known differences is headed
by them, because they are what "the real server" means there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CONTROLLERS", "Layout", "Program", "control_plane", "nodes", "published_flags"]

CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "deployment-controller",
    "replicaset-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
)
"""What runs of the controller manager: as much as the local plane does by itself, and Deployments."""

# A node of KWOK gets no taint lifted without the node lifecycle controller, so none is put on it.
_ADMISSION_OFF = ("ServiceAccount", "TaintNodesByCondition")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where one control plane keeps its files and listens."""

    directory: Path
    client_port: int
    peer_port: int
    port: int

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    def file(self, name: str) -> Path:
        return self.directory / name


@dataclass(frozen=True, slots=True)
class Program:
    """One program and its arguments."""

    name: str
    arguments: Sequence[str]


def control_plane(at: Layout) -> tuple[Program, Program]:
    """etcd and the API server."""
    return _etcd(at), _api_server(at)


def nodes(at: Layout, *, stages: Sequence[Path]) -> tuple[Program, Program]:
    """A scheduler, and KWOK as the kubelet of fake nodes."""
    return (
        Program("kube-scheduler", (f"--kubeconfig={at.kubeconfig}", "--leader-elect=false", "--secure-port=0")),
        Program(
            "kwok",
            (
                f"--kubeconfig={at.kubeconfig}",
                "--manage-all-nodes=true",
                "--node-lease-duration-seconds=40",
                *(f"--config={stage}" for stage in stages),
            ),
        ),
    )


def controller_manager(at: Layout) -> Program:
    return Program(
        "kube-controller-manager",
        (
            f"--kubeconfig={at.kubeconfig}",
            f"--controllers={','.join(CONTROLLERS)}",
            "--leader-elect=false",
            "--secure-port=0",
            # Housekeeping that waits for a rate limit would make every deletion in a test slow.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ),
    )


def _etcd(at: Layout) -> Program:
    client, peer = f"http://127.0.0.1:{at.client_port}", f"http://127.0.0.1:{at.peer_port}"
    return Program(
        "etcd",
        (
            f"--data-dir={at.file('etcd')}",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",
            "--log-level=warn",
        ),
    )


def _api_server(at: Layout) -> Program:
    return Program(
        "kube-apiserver",
        (
            f"--etcd-servers=http://127.0.0.1:{at.client_port}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={at.port}",
            f"--cert-dir={at.directory}",
            f"--tls-cert-file={at.file('server.crt')}",
            f"--tls-private-key-file={at.file('server.key')}",
            f"--client-ca-file={at.file('ca.crt')}",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={','.join(_ADMISSION_OFF)}",
            f"--service-account-issuer={at.url}",
            f"--service-account-key-file={at.file('accounts.key')}",
            f"--service-account-signing-key-file={at.file('accounts.key')}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
        ),
    )


def published_flags() -> dict[str, list[str]]:
    """Program -> its flags that are not defaults, without what is of one run only."""
    at = Layout(directory=Path("DIR"), client_port=1, peer_port=2, port=3)
    shown = {}
    for program in (*control_plane(at), controller_manager(at)):
        words = [
            argument.replace("127.0.0.1:1", "ETCD").replace("127.0.0.1:2", "PEER") for argument in program.arguments
        ]
        shown[program.name] = [word.replace("127.0.0.1:3", "SERVER").replace("port=3", "port=PORT") for word in words]
    return shown
