"""What a request and its answer look like, whatever they are about.

exchange                                one request and its answer
routes, attributes                      what a path and a verb mean: to us, and to the rules of a role
bodies, protobuf, protobuf_tables       how objects come in
negotiation, rendering                  how they go out
"""

from kardinal.localplane.wire.attributes import attributes_of
from kardinal.localplane.wire.bodies import content_type, decode_document, decode_json_or_yaml, read_body
from kardinal.localplane.wire.exchange import JSON_HEADERS, Exchange, json_response, manager_of
from kardinal.localplane.wire.negotiation import accepts_aggregated_discovery, negotiate
from kardinal.localplane.wire.rendering import Renderer
from kardinal.localplane.wire.routes import Target, flag, resolve, unknown_path, verb_of

__all__ = [
    "JSON_HEADERS",
    "Exchange",
    "Renderer",
    "Target",
    "accepts_aggregated_discovery",
    "attributes_of",
    "content_type",
    "decode_document",
    "decode_json_or_yaml",
    "flag",
    "json_response",
    "manager_of",
    "negotiate",
    "read_body",
    "resolve",
    "unknown_path",
    "verb_of",
]
