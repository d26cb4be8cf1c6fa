"""The functions that the rules of a CRD may call.

Most are those of `kardinal.cel`; addresses and named formats are Kubernetes' alone. Rules are checked against
`signatures` before they run, so an implementation may rely on its types.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from kardinal import cel
from kardinal.cel import Function
from kardinal_local.plane.schemas.printing import quoted
from kardinal_local.plane.schemas.rules.addresses import ADDRESS_FUNCTIONS
from kardinal_local.plane.schemas.rules.namedformats import FORMAT_FUNCTIONS

__all__ = ["RULES"]

_ADDED: Final[dict[str, Function]] = {
    "strings.quote": Function({(str,): quoted}),
    "int": Function({(timedelta,): lambda span: int(span.total_seconds())}),
    "duration": Function({(int,): lambda seconds: timedelta(seconds=seconds)}),
}

_LIMITS: Final = cel.Limits(steps=1_000_000, memory=1 << 30)
"""An end to nested comprehensions; what a rule may cost, Kubernetes decides when the CRD is written."""

RULES: Final = cel.Library(
    cel.merged(cel.FUNCTIONS, _ADDED, ADDRESS_FUNCTIONS, FORMAT_FUNCTIONS),
    cel.MACROS,
    checked=True,
    limits=_LIMITS,
)
"""What the rules of a CRD may use."""
