"""Transfers are made by `git`, which connects to the address that was looked at; libgit2 would look for one itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("kardinal", "kardinal_agent", "kardinal_controller", "kardinal_local", "kardinal_supplychain")
TRANSFERS = {"RemoteCallbacks", "clone_repository", "create_anonymous", "Keypair", "list_heads", "UserPass"}
"""Names of pygit2 that every transfer of its needs one of."""


def transfers(source: str) -> Iterator[str]:
    if not any(name in source for name in TRANSFERS):
        return
    for node in ast.walk(ast.parse(source)):
        names = {getattr(node, "attr", ""), getattr(node, "id", "")} | {
            alias.name for alias in getattr(node, "names", ()) if isinstance(alias, ast.alias)
        }
        yield from names & TRANSFERS


def test_no_transfer_is_made_by_libgit2() -> None:
    modules = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    assert modules
    assert {str(path): found for path in modules if (found := list(transfers(path.read_text())))} == {}


def test_a_transfer_by_libgit2_is_found() -> None:
    assert list(transfers("class Ours(pygit2.RemoteCallbacks): ...")) == ["RemoteCallbacks"]
    assert list(transfers("from pygit2 import clone_repository")) == ["clone_repository"]
