"""The one CEL environment: policy gates, Graph nodes and the CRD rules of the local plane share it.

program = cel.compile('dev.status.state == "Verified"')
outcome = program.evaluate({"dev": step}, now=clock.now())      # Value, Missing or Failed
"""

from kardinal.cel.budget import STANDARD_LIMITS, STEP, Budget, Limits
from kardinal.cel.cache import SourceCache
from kardinal.cel.errors import CompileError, CpuTimeExceeded, FailureKind, Fault, Location
from kardinal.cel.functions import FUNCTIONS
from kardinal.cel.grammar import SOURCE_LIMIT
from kardinal.cel.library import MACROS, STANDARD, Library
from kardinal.cel.lowering import lower
from kardinal.cel.overloads import Function, merged
from kardinal.cel.program import (
    Failed,
    Missing,
    Outcome,
    Program,
    Value,
    compile,  # noqa: A004 - read as `cel.compile`
    is_known,
    program_of,
    remember,
    syntax_of,
)
from kardinal.cel.quarantine import Quarantine
from kardinal.cel.references import Reference, chain
from kardinal.cel.syntax import Call, Constant, Name, Node, children
from kardinal.cel.values import NOTHING, OMIT, Omitted, Optional, Uint, equal

__all__ = [
    "FUNCTIONS",
    "MACROS",
    "NOTHING",
    "OMIT",
    "SOURCE_LIMIT",
    "STANDARD",
    "STANDARD_LIMITS",
    "STEP",
    "Budget",
    "Call",
    "CompileError",
    "Constant",
    "CpuTimeExceeded",
    "Failed",
    "FailureKind",
    "Fault",
    "Function",
    "Library",
    "Limits",
    "Location",
    "Missing",
    "Name",
    "Node",
    "Omitted",
    "Optional",
    "Outcome",
    "Program",
    "Quarantine",
    "Reference",
    "SourceCache",
    "Uint",
    "Value",
    "chain",
    "children",
    "compile",
    "equal",
    "is_known",
    "lower",
    "merged",
    "program_of",
    "remember",
    "syntax_of",
]
