"""Reading kubeconfig files and in-cluster credentials, through kubernetes_asyncio.

The library knows contexts, merged files, client certificates and exec plugins; what it does not know is how to stay
off the event loop, how to forget the keys it writes to temporary files, and how to say an error without quoting the
credentials next to it. So it is imported late (it costs a third of a second and 60 MB), runs on a thread with a loop
of its own, writes into a directory that is gone when the load is done, and its messages pass a filter. Search order:
explicit path, KUBECONFIG, ~/.kube/config, the service account of the pod.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import tempfile
import threading
from pathlib import Path
from typing import Any

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

_library = threading.Lock()


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
    # The library remembers temporary files per process by their content: loads must not overlap,
    # and must not find files of a directory that is gone.
    with _library, tempfile.TemporaryDirectory(prefix="kardinal-") as scratch:
        try:
            merged = kube_config.KubeConfigMerger(named).config
            _check_context(named, merged.value if merged else None, context)
            loader = kube_config.KubeConfigLoader(
                config_dict=merged, active_context=context, config_base_path=None, temp_file_path=scratch
            )
            settings = Configuration()
            with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
                runner.run(_authenticate(loader, settings))
            return Access(
                server=_server(named, settings.host),
                namespace=_namespace_of(loader),
                authorization=settings.api_key.get("BearerToken"),
                tls=_tls(settings),
                tls_server_name=settings.tls_server_name,
                proxy=settings.proxy,
                lifetime=_lifetime(loader),
            )
        except ConfigException as error:
            said = str(error) if str(error).startswith(SAFE_MESSAGES) else "an entry is incomplete"
            raise ConfigError(f"{named} cannot be used: {said}. Compare with `kubectl config view`.") from None
        except TimeoutError:
            raise ConfigError(f"{named}: the exec plugin did not answer within {EXEC_PLUGIN_DEADLINE:.0f} s") from None
        except (ssl.SSLError, ValueError, TypeError, KeyError, AttributeError, AssertionError, OSError) as error:
            raise ConfigError(
                f"{named} cannot be used ({type(error).__name__}): it is not a well-formed kubeconfig. "
                "Compare with `kubectl config view`."
            ) from None
        finally:
            kube_config._temp_files.clear()


async def _authenticate(loader: Any, settings: Any) -> None:
    async with asyncio.timeout(EXEC_PLUGIN_DEADLINE):
        await loader.load_and_set(settings)


def _check_context(named: str, config: Any, context: str | None) -> None:
    """Say the commonest mistakes in words: no context chosen, or one that is not there."""
    if not isinstance(config, dict):
        raise ConfigError(f"{named} is empty or not a mapping: it is not a kubeconfig")
    names = [item["name"] for item in config.get("contexts") or []]
    wanted = context or config.get("current-context")
    if not wanted:
        raise ConfigError(f"{named} sets no current-context: choose one of {', '.join(names) or 'none'} with --context")
    if wanted not in names:
        raise ConfigError(f"{named} has no context {wanted!r}: choose one of {', '.join(names) or 'none'}")


def _server(named: str, host: str | None) -> str:
    if host is None or not host.startswith(("https://", "http://")):
        raise ConfigError(f"{named}: the cluster's server must be an http(s) URL")
    return host


def _namespace_of(loader: Any) -> str:
    return str(loader.current_context["context"].get("namespace") or "default")


def _lifetime(loader: Any) -> float | None:
    return EXEC_PLUGIN_LIFETIME if loader._user is not None and "exec" in loader._user else None


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
