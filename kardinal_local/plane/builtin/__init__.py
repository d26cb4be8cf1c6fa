"""The kinds that are served without a CRD.

kinds                           the list of them
typed                           one kind: its schema, how a document becomes its object, what is refused
definitions, schemas.jsonl      what the real server's OpenAPI says of their types (generated)
types, types.txt                what Go and protobuf know of the same types (generated)
decoding                        a document as a value of its type; moments and quantities read themselves
mismatches                      where a value does not fit its type, and the words for it
defaults, preparation           what the server fills in, on every decoding and on every write
validation                      what it refuses
events                          the two spellings of an Event
"""

from kardinal_local.plane.builtin.decoding import decode_metadata
from kardinal_local.plane.builtin.definitions import META, components, object_meta, schema_name, with_metadata
from kardinal_local.plane.builtin.kinds import BUILTIN_KINDS, CUSTOM_RESOURCE_DEFINITION, NAMESPACE
from kardinal_local.plane.builtin.preparation import NAMESPACE_FINALIZER
from kardinal_local.plane.builtin.typed import BuiltinType
from kardinal_local.plane.builtin.types import Field, Struct, struct

__all__ = [
    "BUILTIN_KINDS",
    "CUSTOM_RESOURCE_DEFINITION",
    "META",
    "NAMESPACE",
    "NAMESPACE_FINALIZER",
    "BuiltinType",
    "Field",
    "Struct",
    "components",
    "decode_metadata",
    "object_meta",
    "schema_name",
    "struct",
    "with_metadata",
]
