"""The documents that the page gets over HTTP and in its stream.

A page of the browser shows one document: `Overview`, `PipelineDocument`, `BundleDocument`, `GraphDocument`, or one of
the two drawers, `EnvironmentDocument` and `GateDocument`. Everything in a document that can change by itself has a key
of its own in an object, not a place in a list, so that a change is a JSON merge patch (RFC 7396) of a few bytes:

    event: snapshot                                        event: patch
    id: 7f3c-41                                            id: 7f3c-42
    data: {"rows": {"shop/search": {…}, …}, …}             data: {"rows": {"shop/search": {"need": "held"}}}

A patch removes what it sets to null. So no field has null as a value of its own: a field without a value is left out.
Times are ISO 8601 in UTC; durations and relative times are computed by the page from them.

parts       texts, links, states and conditions, which several documents have
overview    the overview: a row for each Pipeline, with a card for each environment
gates       a gate before an environment, in the DAG and in its drawer
bundles     a Bundle: its card on the timeline, its page, and the evidence for each environment
pipelines   the page of a Pipeline: timeline, DAG, and the drawer of an environment
graphs      the page of a Graph, and the list of them
requests    the viewer, log in, actions, Events, errors, and the end of a stream
"""

from kardinal_controller.ui.model.bundles import Approver, BundleCard, BundleDocument, BundleList, EnvironmentEvidence
from kardinal_controller.ui.model.gates import DrawnGate, GateAnswer, GateDocument, GateSoak, GateValue
from kardinal_controller.ui.model.graphs import GraphDocument, GraphList, GraphNodeLine, GraphRow
from kardinal_controller.ui.model.overview import EnvironmentCard, Need, Overview, PipelineList, PipelineRow
from kardinal_controller.ui.model.parts import ConditionLine, Link, PageNotice, Sentence, StateMark, Tone, View
from kardinal_controller.ui.model.pipelines import (
    DrawnEnvironment,
    Edge,
    EnvironmentDocument,
    PastPromotion,
    PipelineDocument,
    StepLine,
    StepPosition,
)
from kardinal_controller.ui.model.requests import (
    ActionAnswer,
    ActionName,
    ActionRequest,
    EventLine,
    EventList,
    LoggedIn,
    LogIn,
    PageError,
    PlannedChange,
    StreamEnd,
    Viewer,
)

__all__ = [
    "ActionAnswer",
    "ActionName",
    "ActionRequest",
    "Approver",
    "BundleCard",
    "BundleDocument",
    "BundleList",
    "ConditionLine",
    "DrawnEnvironment",
    "DrawnGate",
    "Edge",
    "EnvironmentCard",
    "EnvironmentDocument",
    "EnvironmentEvidence",
    "EventLine",
    "EventList",
    "GateAnswer",
    "GateDocument",
    "GateSoak",
    "GateValue",
    "GraphDocument",
    "GraphList",
    "GraphNodeLine",
    "GraphRow",
    "Link",
    "LogIn",
    "LoggedIn",
    "Need",
    "Overview",
    "PageError",
    "PageNotice",
    "PastPromotion",
    "PipelineDocument",
    "PipelineList",
    "PipelineRow",
    "PlannedChange",
    "Sentence",
    "StateMark",
    "StepLine",
    "StepPosition",
    "StreamEnd",
    "Tone",
    "View",
    "Viewer",
]
