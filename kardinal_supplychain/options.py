"""The options of the program of supply chains."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from kardinal.runtime.options import address_setting, metrics_auth_setting, setting

__all__ = ["SupplyChainOptions"]


@dataclass(frozen=True, slots=True)
class SupplyChainOptions:
    """The settings of the program, as its command line gives them."""

    ytt: Path | None = setting(
        "--ytt",
        type=click.Path(dir_okay=False, exists=True, path_type=Path),
        help="The program ytt, for templates with spec.ytt. Default: the one in PATH.",
    )
    metrics_address: str | None = address_setting("--metrics-bind-address", default=":8087", help="/metrics")
    metrics_auth: Literal["token", "none"] = metrics_auth_setting()
    probe_address: str | None = address_setting(
        "--health-probe-bind-address", default=":8088", help="/healthz and /readyz"
    )
