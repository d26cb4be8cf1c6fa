"""Replace secret references in what was rendered by the tokens that `kapitan refs --reveal` understands."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from kardinal.catalog.errors import CatalogError
from kardinal.objects.text import cut

__all__ = ["Tokens"]

_REFERENCE = re.compile(r"\?\{\w++:[\w\-.@=/:]++(?:\}|\|\|\w)")
"""A reference, or the beginning of one with functions, such as `?{vaultkv:a/b||random:str}`, which no parameter has."""


class Tokens:
    """Secret references by their text, each with its token, such as `?{vaultkv:a/b:1f2e3d4c}` for `?{vaultkv:a/b}`."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = tokens

    def replaced(self, value: Any) -> Any:
        """Return a value with the tokens in all its texts. Raises `CatalogError` for an unknown reference."""
        match value:
            case str():
                return _REFERENCE.sub(self._token, value) if "?{" in value else value
            case list():
                return [self.replaced(item) for item in value]
            case dict():
                # In place, as kapitan does: two mentions of one object stay one, which PyYAML writes as an alias.
                for key, item in value.items():
                    value[key] = self.replaced(item)
                return value
        return value

    def _token(self, found: re.Match[str]) -> str:
        token = self._tokens.get(found[0])
        if token is None:
            raise CatalogError(
                "render",
                f"the secret reference {cut(found[0], 200)} stands in a template, and in no parameter",
                remedy="Put the reference into a parameter of the component, and use the parameter in the template",
            )
        return token
