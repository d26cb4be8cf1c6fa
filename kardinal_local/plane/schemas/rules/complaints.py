"""Compile errors of expressions, and how they point at the place."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Complaint"]

_WIDE = {".": "\uff0e", "^": "\uff3e"}


@dataclass(frozen=True, slots=True)
class Complaint:
    """One fault, at an offset into the text."""

    position: int
    message: str

    def told(self, text: str) -> str:
        """The complaint with the line it is about."""
        before = text[: self.position]
        row, column = before.count("\n"), self.position - (before.rfind("\n") + 1)
        line = text.split("\n")[row].replace("\t", " ")
        marks = ["." if char.isascii() else _WIDE["."] for char in line[:column]]
        marks.append("^" if line[column : column + 1].isascii() else _WIDE["^"])
        return f"ERROR: <input>:{row + 1}:{column + 1}: {self.message}\n | {line}\n | {''.join(marks)}"
