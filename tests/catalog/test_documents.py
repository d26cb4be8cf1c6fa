"""Documents of a catalog are read within bounds, and errors name their place."""

from __future__ import annotations

import pytest

from kardinal.catalog.documents import DOCUMENT_LIMIT, read_json, read_yaml
from kardinal.catalog.errors import CatalogError, Where

HERE = Where(file="commodore.yml")
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{after}: &{after} [{', '.join([f'*{before}'] * 9)}]\n"
    for before, after in zip("abcdefghijk", "bcdefghijkl", strict=True)
)


@pytest.mark.parametrize(
    ("content", "kind", "words"),
    [
        (b"a: 1\nb: 2\na: 3\n", "invalid", "commodore.yml, line 3: the key 'a'"),
        (b"a:\n\t- 1\n", "invalid", "line 2"),
        (b"a: \xff\n", "invalid", "not text in UTF-8"),
        (b"[" * 5_000, "limit", "levels of nesting"),
        (b"- " + b"x" * DOCUMENT_LIMIT, "limit", "bytes"),
        (b"a: !!int ''\n", "invalid", "what its tag says"),
    ],
)
def test_yaml_is_refused(content: bytes, kind: str, words: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_yaml(content, HERE)
    assert caught.value.kind == kind
    assert words in caught.value.message


def test_yaml_with_aliases_takes_no_time() -> None:
    assert isinstance(read_yaml(BOMB.encode(), HERE), dict)


@pytest.mark.parametrize(("content", "kind"), [(b"{", "invalid"), (b"[" * 5_000, "limit")])
def test_json_is_refused(content: bytes, kind: str) -> None:
    with pytest.raises(CatalogError) as caught:
        read_json(content, HERE)
    assert caught.value.kind == kind
