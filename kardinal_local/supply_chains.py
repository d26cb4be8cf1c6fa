"""Run supply chains beside the other programs of `kardinal local up`: in the same process, as an account of their own.

This is imported with `--supply-chains` alone, so that no other start pays for it.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

from kardinal.clock import SystemClock
from kardinal.kube import Client, load_connection
from kardinal_local.definitions import INSTALLER, install_definitions
from kardinal_local.rights import supply_chain_manifests
from kardinal_supplychain.api.crds import definitions
from kardinal_supplychain.options import SupplyChainOptions
from kardinal_supplychain.program import NAME, SupplyChains

__all__ = ["start_supply_chains"]


async def start_supply_chains(
    stack: AsyncExitStack, installer: Client, kubeconfig: Path, *, ytt: Path | None, metrics_address: str
) -> str:
    """Install the kinds and the rights of supply chains, and start their program; it is stopped when `stack` is closed.

    `installer` installs, and the program runs as the user of `kubeconfig`. Returns the URL of its metrics.
    """
    await install_definitions(installer, await asyncio.to_thread(definitions))
    for resource, manifest in supply_chain_manifests():
        await installer.apply(resource, manifest, field_manager=INSTALLER, force=True)
    client = await stack.enter_async_context(Client(await load_connection(kubeconfig), user_agent=NAME))
    options = SupplyChainOptions(
        ytt=ytt,
        metrics_address=metrics_address,
        # The server listens on 127.0.0.1 only.
        metrics_auth="none",
        # The API server is not ready before this program is.
        probe_address=None,
    )
    program = SupplyChains(options, client, clock=SystemClock())
    stack.push_async_callback(program.stop)
    await program.start()
    return program.manager.urls["metrics"]
