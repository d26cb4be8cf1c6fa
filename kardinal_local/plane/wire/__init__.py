"""Read requests and write responses, whatever resource they concern.

connections, exchange                   whom it comes from; one request and its answer
routes, attributes                      what a path and a verb mean: to us, and to the rules of a role
bodies, json_text, yaml_text, protobuf  what comes in
negotiation, rendering                  in which form something goes out
answers, warnings                       how it goes out
chaos                                   what may happen to it on the way
"""

from kardinal_local.plane.wire.answers import finish, refusal, send
from kardinal_local.plane.wire.attributes import attributes_of
from kardinal_local.plane.wire.bodies import (
    Body,
    content_type,
    decode_configuration,
    decode_document,
    decode_options,
    decode_patch,
    read_body,
)
from kardinal_local.plane.wire.chaos import Chaos, Disconnected
from kardinal_local.plane.wire.connections import Connections
from kardinal_local.plane.wire.exchange import JSON_HEADERS, Exchange, json_response, manager_of
from kardinal_local.plane.wire.negotiation import Form, Representation, accepts_aggregated_discovery, negotiate
from kardinal_local.plane.wire.rendering import Renderer
from kardinal_local.plane.wire.routes import NoSuchPath, Target, flag, resolve, unknown_path, verb_of
from kardinal_local.plane.wire.warnings import warning_headers

__all__ = [
    "JSON_HEADERS",
    "Body",
    "Chaos",
    "Connections",
    "Disconnected",
    "Exchange",
    "Form",
    "NoSuchPath",
    "Renderer",
    "Representation",
    "Target",
    "accepts_aggregated_discovery",
    "attributes_of",
    "content_type",
    "decode_configuration",
    "decode_document",
    "decode_options",
    "decode_patch",
    "finish",
    "flag",
    "json_response",
    "manager_of",
    "negotiate",
    "read_body",
    "refusal",
    "resolve",
    "send",
    "unknown_path",
    "verb_of",
    "warning_headers",
]
