"""Finding the API server and the credentials, and saying what to do when there are none."""

from __future__ import annotations

import base64
import datetime
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kardinal.kube import ConfigError, load_connection

SECRET = "hunter2"


@pytest.fixture(autouse=True)
def _no_surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


@pytest.fixture(scope="module")
def authority() -> dict[str, str]:
    """A certificate and its key, as a kubeconfig embeds them."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=3650))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {"certificate": pem.decode(), "key": private.decode()}


def config(**user: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "team"}},
            {"name": "there", "context": {"cluster": "c", "user": "u"}},
        ],
    }


@pytest.fixture
def write(tmp_path: Path) -> Callable[[object], Path]:
    def written(content: object, name: str = "config") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return written


async def test_a_token_and_the_namespace_of_the_context_are_read(write: Callable[[object], Path]) -> None:
    connection = await load_connection(write(config(token=SECRET)))
    assert connection.server == "http://127.0.0.1:1"
    assert connection.namespace == "team"
    assert (await connection.access()).authorization == f"Bearer {SECRET}"


async def test_another_context_can_be_chosen(write: Callable[[object], Path]) -> None:
    assert (await load_connection(write(config()), "there")).namespace == "default"


async def test_embedded_certificates_are_used_and_leave_no_file(
    write: Callable[[object], Path], authority: dict[str, str]
) -> None:
    encoded = {name: base64.b64encode(text.encode()).decode() for name, text in authority.items()}
    content = config(**{"client-certificate-data": encoded["certificate"], "client-key-data": encoded["key"]})
    content["clusters"][0]["cluster"] = {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": encoded["certificate"],
    }
    path = write(content)
    for _ in range(3):
        connection = await load_connection(path)
        tls = (await connection.access()).tls
        assert tls is not None
        assert len(tls.get_ca_certs()) == 1
        assert tls.check_hostname
    # The leak detectors look for open and forgotten files.


async def test_an_unverified_cluster_is_taken_at_its_word(write: Callable[[object], Path]) -> None:
    content = config()
    content["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1", "insecure-skip-tls-verify": True}
    tls = (await (await load_connection(write(content))).access()).tls
    assert tls is not None
    assert not tls.check_hostname


async def test_an_exec_plugin_is_run_again_when_its_token_is_refused(
    write: Callable[[object], Path], tmp_path: Path
) -> None:
    counter = tmp_path / "runs"
    counter.write_text("")
    script = tmp_path / "plugin.py"
    script.write_text(
        "import json, pathlib\n"
        f"runs = pathlib.Path({str(counter)!r})\n"
        "runs.write_text(runs.read_text() + 'x')\n"
        "status = {'token': 'token-' + str(len(runs.read_text()))}\n"
        "answer = {'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential', 'status': status}\n"
        "print(json.dumps(answer))\n"
    )
    plugin = {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(script)]}
    connection = await load_connection(write(config(exec=plugin)))
    first = await connection.access()
    assert first.authorization == "Bearer token-1"
    assert (await connection.access()) is first
    assert (await connection.renew(first)).authorization == "Bearer token-2"
    # Somebody else noticed the same stale token a moment later.
    assert (await connection.renew(first)).authorization == "Bearer token-2"


async def test_an_exec_plugin_can_hand_out_a_client_certificate(
    write: Callable[[object], Path], tmp_path: Path, authority: dict[str, str]
) -> None:
    answer = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "status": {"clientCertificateData": authority["certificate"], "clientKeyData": authority["key"]},
    }
    output = tmp_path / "answer.yaml"
    output.write_text(json.dumps(answer))
    content = config(exec={"apiVersion": answer["apiVersion"], "command": "cat", "args": [str(output)]})
    content["clusters"][0]["cluster"] = {"server": "https://127.0.0.1:1"}
    access = await (await load_connection(write(content))).access()
    assert access.tls is not None
    assert access.authorization is None


async def test_a_failing_exec_plugin_is_quoted(write: Callable[[object], Path]) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "sh",
        "args": ["-c", "echo log in >&2; exit 3"],
    }
    with pytest.raises(ConfigError, match=r"process returned 3\. log in"):
        await load_connection(write(config(exec=plugin)))


async def test_the_explicit_file_comes_before_the_variable_and_that_before_the_home(
    write: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def named(server: str) -> dict[str, Any]:
        content = config()
        content["clusters"][0]["cluster"]["server"] = server
        return content

    write(named("http://home"), "home/.kube/config")
    assert (await load_connection()).server == "http://home"
    first, second = write(named("http://first"), "first"), write(named("http://second"), "second")
    monkeypatch.setenv("KUBECONFIG", f"/does/not/exist:{first}:{second}")
    assert (await load_connection()).server == "http://first"
    assert (await load_connection(second)).server == "http://second"


async def test_a_pod_uses_its_service_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigError, match="service account of this pod"):
        await load_connection()


async def test_without_any_configuration_the_error_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"--kubeconfig.*KUBECONFIG.*kardinal local up"):
        await load_connection()


async def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="missing does not exist"):
        await load_connection(tmp_path / "missing")
    monkeypatch.setenv("KUBECONFIG", "/nowhere/config")
    with pytest.raises(ConfigError, match="KUBECONFIG names /nowhere/config"):
        await load_connection()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not a well-formed"),
        ("- a\n- b\n", "not a well-formed"),
        ("a: [b\n", "not a well-formed"),
        ({**config(), "current-context": ""}, "no current-context: choose one of here, there"),
        ({**config(), "current-context": "gone"}, "no context 'gone': choose one of here, there"),
        ({**config(token=SECRET), "clusters": []}, "incomplete"),
        ({**config(token=SECRET), "clusters": [{"name": "c", "cluster": {"server": "ftp://x"}}]}, r"http\(s\) URL"),
        ({**config(token=SECRET), "clusters": [{"name": "c"}]}, "incomplete|not a well-formed"),
    ],
    ids=["empty", "a list", "not YAML", "no context", "unknown context", "no cluster", "no URL", "hollow cluster"],
)
async def test_a_broken_file_is_explained_without_quoting_credentials(
    write: Callable[[object], Path], content: object, message: str
) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        await load_connection(write(content))
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
