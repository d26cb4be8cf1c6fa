"""Whole numbers on the command line, with a range that help and errors describe in words."""

from __future__ import annotations

import click

__all__ = ["WholeNumber"]


class WholeNumber(click.IntRange):
    """A parameter type for whole numbers; help and errors write `from 0 to 9` in place of click's `0<=x<=9`."""

    name = "whole number"

    def _describe_range(self) -> str:
        return f"from {self.min} to {self.max}" if self.max is not None else f"from {self.min} up"
