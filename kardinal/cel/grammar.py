"""From text to a parse tree.

The grammar is cel-python's own, read from the installed distribution and not changed. Only the grammar is used: the
library's evaluator converts whole objects, evaluates both sides of `&&`, and writes values into its error messages, so
kardinal evaluates the tree itself. Reading the file through the distribution's metadata leaves the library unimported,
which saves 20 MB and its change of the recursion limit.

The grammar is older than optionals (`a.?b`, `a[?k]`, `[?x]`, `{?k: v}`) and quoted fields (a.`kubernetes.io/name`). So
the parser reads a copy of the text, of the same length: a question mark of an optional is a space in it, and a quoted
field a name of underscores. Every offset in the tree is therefore one in the text.

The parser is built on import: half a second on the event loop, at the first gate, would stall every worker.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from kardinal.cel.errors import CompileError

__all__ = ["SOURCE_LIMIT", "Parsed", "is_too_long", "parse", "read_grammar"]

SOURCE_LIMIT = 4096
"""The most bytes of one expression, in UTF-8."""

_LEXEME: Final = re.compile(
    r"""
    (?P<blank> [\t\n\f\r\ ]+ | //[^\n]* )
    | [bB]? [rR] (?: \"{3} .*? \"{3} | '{3} .*? '{3} | "[^"\n]*" | '[^'\n]*' )
    | [bB]? (?: \"{3} (?:\\.|[^\\])*? \"{3} | '{3} (?:\\.|[^\\])*? '{3} | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<quoted> `[A-Za-z0-9_./\ -]+` )
    | \w+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
"""One token, as far as question marks and quoted fields need it: strings are taken whole."""

_BEFORE_OPTIONAL: Final = frozenset(".[{,")
"""The tokens after which a question mark is one of an optional; that of `a ? b : c` follows none of them."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """A parse tree.

    `optionals`: the offsets of what a question mark makes optional, with the offsets of the question marks.
    `quoted`: the quoted fields by their offsets.
    """

    tree: Tree[Token]
    optionals: dict[int, int]
    quoted: dict[int, str]


def read_grammar() -> str:
    """Return the text of the grammar, which nothing changes."""
    return Path(str(distribution("cel-python").locate_file("celpy/cel.lark"))).read_text(encoding="utf-8")


def _word(token: Token) -> Token:
    return Token.new_borrow_pos("BOOL_LIT", token.value, token) if token.value in {"true", "false"} else token


_PARSER = Lark(
    read_grammar(),
    parser="lalr",
    start="expr",
    lexer_callbacks={"IDENT": _word},
    propagate_positions=True,
    maybe_placeholders=False,
    priority="invert",
)


def is_too_long(source: str) -> bool:
    """Return whether an expression has more than `SOURCE_LIMIT` bytes."""
    return len(source.encode("utf-8", "surrogatepass")) > SOURCE_LIMIT


def parse(source: str) -> Parsed:
    """Return the parse tree of `source`; the library's own message never leaves this function."""
    if is_too_long(source):
        raise CompileError(min(SOURCE_LIMIT, len(source)), f"the expression is longer than {SOURCE_LIMIT} bytes")
    if not source.strip():
        raise CompileError(0, "the expression is empty")
    text, optionals, quoted = _plain(source)
    try:
        return Parsed(_PARSER.parse(text), optionals, quoted)
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise CompileError(len(source), "the expression ends too early") from None
        raise CompileError(error.pos_in_stream or 0, f"unexpected `{error.token.value}`") from None
    except UnexpectedEOF:
        raise CompileError(len(source), "the expression ends too early") from None
    except UnexpectedCharacters as error:
        position = error.pos_in_stream or 0
        raise CompileError(position, f"unexpected character `{source[position]}`") from None


def _plain(source: str) -> tuple[str, dict[int, int], dict[int, str]]:
    """Return `source` without what the grammar does not know, and where it was."""
    parts: list[str] = []
    optionals: dict[int, int] = {}
    quoted: dict[int, str] = {}
    before = ""
    mark: int | None = None
    for lexeme in _LEXEME.finditer(source):
        text = lexeme[0]
        if lexeme["blank"]:
            parts.append(text)
            continue
        if text == "?" and before in _BEFORE_OPTIONAL:
            mark = lexeme.start()
            parts.append(" ")
            before = text
            continue
        if text in "\"'":
            # A string that does not end: the parser says so.
            return source, {}, {}
        if mark is not None:
            optionals[lexeme.start()] = mark
            mark = None
        if lexeme["quoted"] and before in (".", "?"):
            quoted[lexeme.start()] = text[1:-1]
            text = "_" * len(text)
        parts.append(text)
        before = text
    if mark is not None:
        raise CompileError(mark, "unexpected `?`")
    return "".join(parts), optionals, quoted
