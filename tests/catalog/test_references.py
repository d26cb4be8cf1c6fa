"""Secret references in parameters: their files and tokens, and which are refused."""

from __future__ import annotations

from typing import Any

import pytest

from kardinal.catalog.errors import CatalogError
from kardinal.catalog.references import ReferenceFiles, reference_files
from kardinal.catalog.values import Merged

VAULT = {"VAULT_ADDR": "https://vault", "auth": "token", "mount": "clusters/kv"}
ADDRESS = {"kapitan": {"secrets": {"vaultkv": VAULT}}}


def node(**parameters: Any) -> Merged:
    return Merged((), (), parameters)


def files_of(value: Any, *, cluster: dict[str, Any] | None = None, prefixes: tuple[str, ...] = ()) -> ReferenceFiles:
    instances = {"web-2": ("my-web", node(my_web=value, web_2={}))}
    return reference_files(node(**(ADDRESS if cluster is None else cluster)), instances, prefixes=prefixes)


def test_reference_is_a_file_and_a_token() -> None:
    """The token is that of syn-commodore 1.35.1 for the same reference."""
    found = files_of({"a": [{"b": "x?{vaultkv:x/y}z"}]})
    assert found.tokens == {"?{vaultkv:x/y}": "?{vaultkv:x/y:d3bd86ee}"}
    assert found.files == {
        "x/y": (
            b"data: eDp5\nencoding: original\ntype: vaultkv\nvault_params:\n"
            b"  VAULT_ADDR: https://vault\n  auth: token\n  mount: clusters/kv\n"
        )
    }


def test_all_references_of_a_text_are_found() -> None:
    assert set(files_of("?{vaultkv:a/b/c} ?{vaultkv:a/b/d}").files) == {"a/b/c", "a/b/d"}


def test_parameters_of_other_components_are_not_searched() -> None:
    cluster = node(**ADDRESS, global_="?{vaultkv:g/one}", my_web="?{vaultkv:no/one}", web_2="?{vaultkv:w/one}")
    instances = {
        "web-2": ("my-web", node(my_web="?{vaultkv:i/one}", api="?{vaultkv:no/two}")),
        "api": ("api", node(my_web="?{vaultkv:no/three}")),
    }
    assert set(reference_files(cluster, instances).files) == {"g/one", "i/one", "w/one"}


def test_address_is_not_needed_without_references() -> None:
    assert files_of("no reference", cluster={}) == ReferenceFiles({}, {})


def test_settings_come_from_secret_management_key_by_key() -> None:
    management = {"vault_addr": "https://other", "vault_mount": "m"}
    kapitan = {"secrets": {"vaultkv": {"VAULT_ADDR": "https://vault"}}}
    both = files_of("?{vaultkv:a/b}", cluster={"secret_management": management, "kapitan": kapitan}).files["a/b"]
    assert b"VAULT_ADDR: https://vault\n  mount: m\n" in both
    one = files_of("?{vaultkv:a/b}", cluster={"secret_management": {"vault_addr": "https://other"}}).files["a/b"]
    assert b"VAULT_ADDR: https://other\n  mount: kv\n" in one


def test_reference_without_address_names_both_places() -> None:
    with pytest.raises(CatalogError) as raised:
        files_of("?{vaultkv:a/b}", cluster={})
    assert "kapitan.secrets.vaultkv.VAULT_ADDR" in raised.value.remedy
    assert "secret_management.vault_addr" in raised.value.remedy


@pytest.mark.parametrize(
    ("reference", "kind", "message"),
    [
        ("?{plain:a/b}", "refused", "of type plain"),
        ("?{base64:a/b}", "refused", "of type base64"),
        ("?{vaultkv}", "invalid", "no path"),
        ("?{vaultkv:key}", "invalid", "names no key"),
        ("?{vaultkv:../b}", "refused", "leads elsewhere"),
        ("?{vaultkv:a/../../b}", "refused", "leads elsewhere"),
        ("?{vaultkv:/etc/passwd}", "refused", "leads elsewhere"),
        ("?{vaultkv:a//b}", "refused", "leads elsewhere"),
        ("?{vaultkv:a/b\n}", "refused", "unusual character"),
        ("?{vaultkv:a/b||random:str}", "refused", "unusual character"),
    ],
)
def test_reference_is_refused(reference: str, kind: str, message: str) -> None:
    with pytest.raises(CatalogError, match=message) as raised:
        files_of({"password": [reference]})
    assert raised.value.kind == kind
    assert raised.value.where.instance == "web-2"
    assert raised.value.where.parameter == "my_web.password[0]"
    assert raised.value.remedy


def test_path_is_bound_to_the_prefixes_of_the_tenant() -> None:
    assert set(files_of("?{vaultkv:t-acme/a}", prefixes=("t-acme/", "shared/")).files) == {"t-acme/a"}
    with pytest.raises(CatalogError, match="outside of the tenant"):
        files_of("?{vaultkv:t-other/a}", prefixes=("t-acme/",))


def test_path_is_a_file_or_a_directory() -> None:
    with pytest.raises(CatalogError, match="needs a directory"):
        files_of("?{vaultkv:a/b} ?{vaultkv:a/b/c}")
