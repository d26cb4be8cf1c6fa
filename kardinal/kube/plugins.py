"""Users whose credentials come from another program or an identity provider, through kubernetes_asyncio.

Importing that library takes a third of a second and 40 MB, so it is imported only here, and only for such a user. It
runs on the thread that loads a configuration, on an event loop of its own.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

from kardinal.kube.contexts import Unusable

__all__ = ["DEADLINE", "ask_provider", "run_plugin"]

Answer = TypeVar("Answer")

DEADLINE = 60.0
"""The time in seconds in which a plugin or a provider must answer; otherwise TimeoutError is raised."""


def run_plugin(settings: object) -> dict[str, str]:
    """Run the plugin of the setting `exec`, and return the settings that replace it: a token, a client certificate."""
    from kubernetes_asyncio.config.exec_provider import ExecProvider  # noqa: PLC0415 - see above
    from kubernetes_asyncio.config.kube_config import ConfigNode  # noqa: PLC0415

    async def run() -> Any:
        try:
            return await ExecProvider(ConfigNode("exec", settings)).run()
        except (FileNotFoundError, PermissionError) as error:
            raise Unusable(f"exec: {error.filename} cannot be run ({error.strerror})") from None

    status = _complete(run())
    handed: dict[str, str] = {}
    if "token" in status:
        handed["token"] = status["token"]
    for field, key in (("clientCertificateData", "client-certificate"), ("clientKeyData", "client-key")):
        if field in status:
            handed[f"{key}-data"] = base64.b64encode(status[field].encode()).decode()
    return handed


def ask_provider(user: Mapping[str, Any]) -> str | None:
    """Return the Authorization header from the auth-provider of a user, which is gcp or oidc."""
    from kubernetes_asyncio.client import Configuration  # noqa: PLC0415 - see above
    from kubernetes_asyncio.config.kube_config import KubeConfigLoader  # noqa: PLC0415

    config = {
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "here"}}],
        "clusters": [{"name": "here", "cluster": {"server": "http://here"}}],
        "users": [{"name": "here", "user": user}],
    }

    async def ask() -> str | None:
        settings = Configuration()
        await KubeConfigLoader(config_dict=config).load_and_set(settings)
        authorization: str | None = settings.api_key.get("BearerToken")
        return authorization

    return _complete(ask())


def _complete(work: Coroutine[Any, Any, Answer]) -> Answer:
    from kubernetes_asyncio.config import ConfigException  # noqa: PLC0415 - see above

    async def bounded() -> Answer:
        async with asyncio.timeout(DEADLINE):
            return await work

    try:
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            return runner.run(bounded())
    except ConfigException as error:
        # Messages of the library about a plugin name the problem; its other messages may quote the user, with the
        # token.
        raise Unusable(str(error) if str(error).startswith("exec:") else "an entry is incomplete") from None
