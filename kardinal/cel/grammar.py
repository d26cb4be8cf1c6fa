"""From text to a parse tree.

The grammar is cel-python's own, read from the installed distribution, with the optional selectors (`a.?b`, `a[?k]`)
added. Only the grammar is used: the library's evaluator converts whole objects, evaluates both sides of `&&`, and
writes values into its error messages, so kardinal evaluates the tree itself. Reading the file through
the distribution's metadata leaves the library unimported, which saves 20 MB and its change of the recursion limit.

The parser is built on import: half a second on the event loop, at the first gate, would stall every worker.
"""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken

from kardinal.cel.errors import CompileError

__all__ = ["SOURCE_LIMIT", "parse"]

SOURCE_LIMIT = 4096
"""The most characters of one expression."""

_RULE_MEMBER = "member         : member_dot | "
_RULE_DOT = 'member_dot     : member "." IDENT'
_OPTIONAL_RULES = """
member_opt_dot   : member ".?" IDENT
member_opt_index : member "[" "?" expr "]"
"""


def _grammar() -> str:
    text = Path(str(distribution("cel-python").locate_file("celpy/cel.lark"))).read_text(encoding="utf-8")
    if _RULE_MEMBER not in text or _RULE_DOT not in text:
        raise RuntimeError("this release of cel-python has another grammar; kardinal supports cel-python 0.5")
    text = text.replace(_RULE_MEMBER, f"{_RULE_MEMBER}member_opt_dot | member_opt_index | ")
    return text.replace(_RULE_DOT, _RULE_DOT + _OPTIONAL_RULES)


def _word(token: Token) -> Token:
    return Token.new_borrow_pos("BOOL_LIT", token.value, token) if token.value in {"true", "false"} else token


_PARSER = Lark(
    _grammar(),
    parser="lalr",
    start="expr",
    lexer_callbacks={"IDENT": _word},
    propagate_positions=True,
    maybe_placeholders=False,
    priority="invert",
)


def parse(source: str) -> Tree[Token]:
    """Return the parse tree of `source`; the library's own message never leaves this function."""
    if len(source) > SOURCE_LIMIT:
        raise CompileError(SOURCE_LIMIT, f"the expression is longer than {SOURCE_LIMIT} characters")
    if not source.strip():
        raise CompileError(0, "the expression is empty")
    try:
        return _PARSER.parse(source)
    except UnexpectedToken as error:
        if error.token.type == "$END":
            raise CompileError(len(source), "the expression ends too early") from None
        raise CompileError(error.pos_in_stream or 0, f"unexpected `{error.token.value}`") from None
    except UnexpectedEOF:
        raise CompileError(len(source), "the expression ends too early") from None
    except UnexpectedCharacters as error:
        position = error.pos_in_stream or 0
        raise CompileError(position, f"unexpected character `{source[position]}`") from None
