"""The one CEL environment: policy gates, Graph nodes and the CRD rules of the local plane share it (graph.md 3).

program = cel.compile('dev.status.state == "Verified"')
outcome = program.evaluate({"dev": step}, now=clock.now())      # Value, Missing or Failed; never raises
"""

from kardinal.cel.errors import CompileError, FailureKind
from kardinal.cel.lowering import lower
from kardinal.cel.program import Failed, Missing, Outcome, Program, Value, compile  # noqa: A004 - read as `cel.compile`
from kardinal.cel.references import Reference, chain
from kardinal.cel.syntax import Call, Constant, Name, Node, children
from kardinal.cel.values import OMIT, Omitted

__all__ = [
    "OMIT",
    "Call",
    "CompileError",
    "Constant",
    "Failed",
    "FailureKind",
    "Missing",
    "Name",
    "Node",
    "Omitted",
    "Outcome",
    "Program",
    "Reference",
    "Value",
    "chain",
    "children",
    "compile",
    "lower",
]
