"""The options of the page in the controller."""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Literal

import click

from kardinal.runtime.addresses import split_address
from kardinal.runtime.errors import RuntimeFailure
from kardinal.runtime.options import address, setting
from kardinal_controller.ui.certificate import CertificateFiles
from kardinal_controller.ui.documents.links import web_url

__all__ = ["UiOptions", "web_page"]

_FILE = click.Path(dir_okay=False, path_type=Path)
_BASE_PATH = re.compile(r"(/[A-Za-z0-9._~-]+)*")


def _optional_address(value: str) -> str | None:
    return address(value) if value else None


def _no_address() -> None:
    return None


def _base_path(value: str) -> str:
    path = value.rstrip("/")
    if not _BASE_PATH.fullmatch(path):
        raise click.BadParameter(f"{value!r} is no path such as /kardinal")
    return path


def web_page(value: str) -> str:
    """Return the address of a web page without its last slash. Raises `BadParameter` if no page may link to it."""
    page = value.rstrip("/")
    if page and (web_url(page) is None or "?" in page or "#" in page):
        raise click.BadParameter(f"{value!r} is no address such as https://argocd.example.com")
    return page


@dataclass(frozen=True, slots=True)
class UiOptions:
    """The address of the page, and how its viewers are known. It is not served without `auth`."""

    listen_address: str | None = setting(
        "--ui-listen-address",
        default="127.0.0.1:8082",
        metavar="HOST:PORT",
        read=_optional_address,
        unset=_no_address,
        help="Where the web page is served, once --ui-auth is set; empty for nowhere.",
    )
    auth: Literal["token", "proxy"] | None = setting(
        "--ui-auth",
        type=click.Choice(["token", "proxy"]),
        help="How viewers of the web page are known: by a bearer token that they paste, or by the headers of a proxy. "
        "Default: the page is not served.",
    )
    base_path: str = setting(
        "--ui-base-path",
        default="",
        metavar="PATH",
        show_default=False,
        read=_base_path,
        help="The path before /ui/ and /api/ui/, such as /kardinal. Default: none.",
    )
    tls_certificate: Path | None = setting(
        "--ui-tls-cert-file", type=_FILE, help="Certificate chain of the web page in PEM."
    )
    tls_key: Path | None = setting(
        "--ui-tls-key-file", type=_FILE, help="Its key in PEM; both files are read again when they change."
    )
    behind_tls: bool = setting(
        "--ui-behind-tls", is_flag=True, help="A proxy before the web page ends TLS, so that it may be plain here."
    )
    proxy_client_ca: Path | None = setting(
        "--ui-proxy-client-ca",
        type=_FILE,
        help="Authorities of the client certificate that --ui-auth=proxy requires, in PEM.",
    )

    argocd_url: str = setting(
        "--ui-argocd-url",
        default="",
        metavar="URL",
        show_default=False,
        read=web_page,
        help="Argo CD, such as https://argocd.example.com: drawers of environments link to their Applications there.",
    )

    @property
    def is_served(self) -> bool:
        return self.auth is not None and self.listen_address is not None

    @property
    def certificate(self) -> CertificateFiles | None:
        """The files of TLS; None if the page is served without it."""
        if self.tls_certificate is None or self.tls_key is None:
            return None
        return CertificateFiles(self.tls_certificate, self.tls_key, self.proxy_client_ca)

    def check(self) -> None:
        """Raise `RuntimeFailure` for options of a page that would be served unsafely, or not at all."""
        if (self.tls_certificate is None) != (self.tls_key is None):
            raise RuntimeFailure("--ui-tls-cert-file and --ui-tls-key-file: give both, or neither")
        if self.proxy_client_ca is not None and self.auth != "proxy":
            raise RuntimeFailure("--ui-proxy-client-ca is for --ui-auth=proxy alone: give both, or neither")
        if not self.is_served:
            return
        if self.auth == "proxy" and (self.certificate is None or self.proxy_client_ca is None):
            raise RuntimeFailure(
                "--ui-auth=proxy believes the headers of a proxy by its client certificate alone: give "
                "--ui-tls-cert-file, --ui-tls-key-file and --ui-proxy-client-ca"
            )
        if self.auth == "token" and self.certificate is None and not self.behind_tls and not self._is_on_loopback:
            raise RuntimeFailure(
                f"--ui-listen-address={self.listen_address}: tokens would be sent in plain text. Give "
                "--ui-tls-cert-file and --ui-tls-key-file, or --ui-behind-tls where a proxy ends TLS"
            )

    @property
    def _is_on_loopback(self) -> bool:
        host, _ = split_address(self.listen_address or "")
        try:
            return host == "localhost" or ip_address(host or "").is_loopback
        except ValueError:
            return False
