"""Whole numbers within bounds, which are said in words."""

from __future__ import annotations

import click

__all__ = ["WholeNumber"]


class WholeNumber(click.IntRange):
    """A number on the command line; `0<=x<=9` is `from 0 to 9` in its help and its errors."""

    name = "whole number"

    def _describe_range(self) -> str:
        return f"from {self.min} to {self.max}" if self.max is not None else f"from {self.min} up"
