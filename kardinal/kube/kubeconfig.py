"""Reading kubeconfig files and in-cluster credentials, through kubernetes_asyncio.

The library knows contexts, merged files, client certificates and exec plugins; what it does not know is how to stay
off the event loop, how to tidy the keys it writes to temporary files, and how to say an error without quoting the
credentials next to it. So it is imported late (it costs a third of a second and 60 MB), runs on a thread with a loop
of its own, finds embedded keys written out for it in a directory that is gone when the load is done, and its messages
pass a filter. Search order: explicit path, KUBECONFIG, ~/.kube/config, the service account of the pod.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import tempfile
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from kardinal.kube.connection import Access, Connection
from kardinal.kube.errors import ConfigError

__all__ = ["load_connection"]

EXEC_PLUGIN_DEADLINE = 60.0
# A plugin may hand out client certificates, whose end no 401 announces: it is asked again now and then.
EXEC_PLUGIN_LIFETIME = 600.0
SERVICE_ACCOUNT_LIFETIME = 60.0
SERVICE_ACCOUNT_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
# Messages of the library that name a problem; all others may quote the user entry, token included.
SAFE_MESSAGES = ("exec:", "File does not exist", "Service ")

MALFORMED = (ssl.SSLError, ValueError, TypeError, KeyError, AttributeError, AssertionError, OSError, yaml.YAMLError)

_Entry: TypeAlias = dict[str, Any]


async def load_connection(kubeconfig: Path | None = None, context: str | None = None) -> Connection:
    """Find the API server and the credentials the way kubectl does, or say what to do."""

    async def load() -> Access:
        return await asyncio.to_thread(_load, kubeconfig, context)

    return Connection(await load(), load=load)


def _load(kubeconfig: Path | None, context: str | None) -> Access:
    if files := _files(kubeconfig):
        return _load_files(files, context)
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return _load_service_account()
    raise ConfigError(
        "no API server is configured: pass --kubeconfig, set KUBECONFIG, create ~/.kube/config, "
        "or start one with `kardinal local up`"
    )


def _files(kubeconfig: Path | None) -> list[Path]:
    """The files to merge; a file that was asked for by name must be there."""
    if kubeconfig is not None:
        if not kubeconfig.is_file():
            raise ConfigError(f"{kubeconfig} does not exist: pass the path of an existing kubeconfig")
        return [kubeconfig]
    if listed := os.environ.get("KUBECONFIG"):
        paths = [Path(item).expanduser() for item in listed.split(os.pathsep) if item]
        found = [path for path in paths if path.is_file()]
        if not found:
            raise ConfigError(f"KUBECONFIG names {listed}, which does not exist: correct or unset it")
        return found
    default = Path.home() / ".kube" / "config"
    return [default] if default.is_file() else []


def _load_files(files: list[Path], context: str | None) -> Access:
    from kubernetes_asyncio.client import Configuration  # noqa: PLC0415 - a third of a second, only when needed
    from kubernetes_asyncio.config import ConfigException, kube_config  # noqa: PLC0415

    named = os.pathsep.join(map(str, files))
    with tempfile.TemporaryDirectory(prefix="kardinal-") as scratch:
        try:
            merged = kube_config.KubeConfigMerger(named).config
            chosen = _context(named, merged.value if merged else None, context)
            cluster = _entry(merged, "clusters", chosen.get("cluster"))
            user = _entry(merged, "users", chosen.get("user"))
            renewable = "exec" in user
            settings = Configuration()
            loader = kube_config.KubeConfigLoader(config_dict=merged, active_context=context, config_base_path=None)
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(_authenticate(loader, settings, cluster=cluster, user=user, scratch=Path(scratch)))
            return Access(
                server=_server(named, settings.host),
                namespace=chosen.get("namespace") or "default",
                authorization=settings.api_key.get("BearerToken"),
                tls=_tls(settings),
                tls_server_name=settings.tls_server_name,
                proxy=settings.proxy,
                lifetime=EXEC_PLUGIN_LIFETIME if renewable else None,
            )
        except ConfigException as error:
            said = str(error) if str(error).startswith(SAFE_MESSAGES) else "an entry is incomplete"
            raise ConfigError(f"{named} cannot be used: {said}. Compare with `kubectl config view`.") from None
        except TimeoutError:
            raise ConfigError(f"{named}: the exec plugin did not answer within {EXEC_PLUGIN_DEADLINE:.0f} s") from None
        except MALFORMED as error:
            raise ConfigError(
                f"{named} cannot be used ({type(error).__name__}): it is not a well-formed kubeconfig. "
                "Compare with `kubectl config view`."
            ) from None


async def _authenticate(loader: Any, settings: Any, *, cluster: _Entry, user: _Entry, scratch: Path) -> None:
    async with asyncio.timeout(EXEC_PLUGIN_DEADLINE):
        if "exec" in user:
            await _run_plugin(user, scratch)
        _write_data(cluster, scratch, "certificate-authority")
        _write_data(user, scratch, "client-certificate", "client-key")
        await loader.load_and_set(settings)


async def _run_plugin(user: _Entry, scratch: Path) -> None:
    """Put what the plugin hands out in place of the plugin."""
    from kubernetes_asyncio.config.exec_provider import ExecProvider  # noqa: PLC0415 - as above
    from kubernetes_asyncio.config.kube_config import ConfigNode  # noqa: PLC0415

    status = await ExecProvider(ConfigNode("exec", user.pop("exec"))).run()
    if "token" in status:
        user["token"] = status["token"]
    for field, entry in (("clientCertificateData", "client-certificate"), ("clientKeyData", "client-key")):
        if field in status:
            user[f"{entry}-data"] = base64.b64encode(status[field].encode()).decode()


def _write_data(entry: _Entry, scratch: Path, *names: str) -> None:
    """Turn embedded files into files: the library would, into places it never tidies."""
    for name in names:
        if data := entry.pop(f"{name}-data", None):
            path = scratch / name
            path.write_bytes(base64.b64decode(data))
            entry[name] = str(path)


def _context(named: str, config: Any, context: str | None) -> _Entry:
    """The chosen context; says the commonest mistakes in words: none is chosen, or it is not there."""
    if not isinstance(config, dict):
        raise ConfigError(f"{named} is empty or not a mapping: it is not a kubeconfig")
    contexts = {item["name"]: item["context"] for item in map(_plain, config.get("contexts") or [])}
    names = ", ".join(contexts) or "none"
    wanted = context or config.get("current-context")
    if not wanted:
        raise ConfigError(f"{named} sets no current-context: choose one of {names} with --context")
    if wanted not in contexts:
        raise ConfigError(f"{named} has no context {wanted!r}: choose one of {names}")
    found: _Entry = contexts[wanted]
    return found


def _entry(merged: Any, section: str, name: str | None) -> _Entry:
    """The named cluster or user; an empty one when there is none, which is the library's to complain about."""
    singular = section.removesuffix("s")
    for item in map(_plain, merged.value.get(section) or []):
        if item["name"] == name and isinstance(item.get(singular), dict):
            found: _Entry = item[singular]
            return found
    return {}


def _plain(item: Any) -> Any:
    """The library wraps the entries of merged files."""
    return getattr(item, "value", item)


def _server(named: str, host: str | None) -> str:
    if host is None or not host.startswith(("https://", "http://")):
        raise ConfigError(f"{named}: the cluster's server must be an http(s) URL")
    return host


def _load_service_account() -> Access:
    from kubernetes_asyncio.client import Configuration  # noqa: PLC0415 - as above
    from kubernetes_asyncio.config import ConfigException, load_incluster_config  # noqa: PLC0415

    settings = Configuration()
    try:
        load_incluster_config(client_configuration=settings, try_refresh_token=False)  # type: ignore[no-untyped-call]
        tls = _tls(settings)
    except (ConfigException, OSError) as error:
        raise ConfigError(f"the service account of this pod cannot be used: {error}") from None
    namespace = SERVICE_ACCOUNT_NAMESPACE.read_text().strip() if SERVICE_ACCOUNT_NAMESPACE.is_file() else "default"
    return Access(
        server=str(settings.host),
        namespace=namespace,
        authorization=settings.api_key["BearerToken"].strip(),
        tls=tls,
        lifetime=SERVICE_ACCOUNT_LIFETIME,
    )


def _tls(settings: Any) -> ssl.SSLContext | None:
    if not settings.host.startswith("https"):
        return None
    context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
    # Go clients accept authorities without key identifiers, and many clusters have one.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not settings.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if settings.cert_file:
        context.load_cert_chain(settings.cert_file, settings.key_file)
    return context
