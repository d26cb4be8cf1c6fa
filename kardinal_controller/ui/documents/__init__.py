"""The documents of the page, computed from the objects that views read (pure).

    objects = await read_objects(reader, "shop", "search")
    row = pipeline_row(objects, now=now)

Views decide what a state is called and what sentence explains it; what is here adds the colour, the order, links and
the time at which something changes by itself. Everything in the objects was written by users of the cluster: it is
text, and becomes a link only by `links.web_url`.

facts       the views of a Pipeline and what several documents need of them
tones           the colour of each state
sentences       why a Bundle is not further, with the command to type next
links           pages of Git hosts and CI systems
cards           environments, gates and Bundles
overview        rows of the overview, and its notices
pipelines       the page of a Pipeline: timeline and DAG
environments    the drawer of an environment
gates           the drawer of a gate
evidence        the evidence of a Bundle in an environment
bundles         the page of a Bundle
graphs          the page of a Graph
"""

from kardinal_controller.ui.documents.bundles import bundle_document
from kardinal_controller.ui.documents.cards import bundle_card, bundle_cards
from kardinal_controller.ui.documents.environments import environment_document
from kardinal_controller.ui.documents.gates import NoGate, gate_document
from kardinal_controller.ui.documents.graphs import graph_document, graph_row
from kardinal_controller.ui.documents.overview import notices, pipeline_row
from kardinal_controller.ui.documents.pipelines import pipeline_document

__all__ = [
    "NoGate",
    "bundle_card",
    "bundle_cards",
    "bundle_document",
    "environment_document",
    "gate_document",
    "graph_document",
    "graph_row",
    "notices",
    "pipeline_document",
    "pipeline_row",
]
