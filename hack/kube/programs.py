"""The programs of a control plane under test, and their command lines.

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
    "job-controller",
    "ttl-after-finished-controller",
    "serviceaccount-controller",
    "clusterrole-aggregation-controller",
)
"""The controllers of the controller manager that run: those whose work the local plane does too, and what runs pods."""

_ROLLOUTS = ("deployment-controller", "replicaset-controller")

# A node of KWOK gets no taint lifted without the node lifecycle controller, so none is put on it.
_ADMISSION_OFF = ("ServiceAccount", "TaintNodesByCondition")


@dataclass(frozen=True, slots=True)
class Layout:
    """The files and addresses of one control plane."""

    directory: Path
    client_port: int
    peer_port: int
    port: int

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    @property
    def store_url(self) -> str:
        return f"http://127.0.0.1:{self.client_port}"

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
    """Return the command lines of a scheduler, and of KWOK as the kubelet of fake nodes."""
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


def controller_manager(at: Layout, *, rollouts: bool = True) -> Program:
    """Without `rollouts`, what stands in for a kubelet has the status of Deployments for itself."""
    controllers = [name for name in CONTROLLERS if rollouts or name not in _ROLLOUTS]
    return Program(
        "kube-controller-manager",
        (
            f"--kubeconfig={at.kubeconfig}",
            f"--controllers={','.join(controllers)}",
            "--leader-elect=false",
            "--secure-port=0",
            # Housekeeping that waits for a rate limit would make every deletion in a test slow.
            "--kube-api-qps=500",
            "--kube-api-burst=1000",
        ),
    )


def _etcd(at: Layout) -> Program:
    client = at.store_url
    peer = f"http://127.0.0.1:{at.peer_port}"
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
            f"--etcd-servers={at.store_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            f"--secure-port={at.port}",
            f"--cert-dir={at.directory}",
            f"--tls-cert-file={at.file('server.crt')}",
            f"--tls-private-key-file={at.file('server.key')}",
            f"--client-ca-file={at.file('ca.crt')}",
            f"--authentication-config={at.file('authentication.yaml')}",
            "--authorization-mode=RBAC",
            f"--disable-admission-plugins={','.join(_ADMISSION_OFF)}",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            f"--service-account-key-file={at.file('accounts.key')}",
            f"--service-account-signing-key-file={at.file('accounts.key')}",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--allow-privileged=true",
            f"--audit-policy-file={at.file('audit.yaml')}",
            f"--audit-log-path={at.file('audit.log')}",
        ),
    )


def published_flags() -> dict[str, list[str]]:
    """Program -> its flags that are not defaults; ETCD, PEER and PORT stand for the ports of one run."""
    at = Layout(directory=Path("DIR"), client_port=_ETCD, peer_port=_PEER, port=_SERVER)
    return {
        program.name: [_without_ports(argument) for argument in program.arguments]
        for program in (*control_plane(at), controller_manager(at))
    }


_ETCD = 1001
_PEER = 1002
_SERVER = 1003


def _without_ports(argument: str) -> str:
    for port, name in ((_ETCD, "ETCD"), (_PEER, "PEER"), (_SERVER, "PORT")):
        argument = argument.replace(str(port), name)
    return argument
