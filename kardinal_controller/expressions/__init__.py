"""Compile expressions without blocking the event loop: short ones in slices, long ones in a process of their own."""

from kardinal_controller.expressions.compiler import ExpressionCompiler

__all__ = ["ExpressionCompiler"]
