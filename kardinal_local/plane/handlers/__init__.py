"""The handlers of HTTP requests.

api                                 authentication, authorization, routing, errors
reading, watches                    get, list, watch
writing                             create, update, patch, delete
questions                           reviews and requests for tokens
information, discovery, openapi     what is served, and what it looks like
health                              /livez, /readyz, /healthz
"""

from kardinal_local.plane.handlers.api import Api
from kardinal_local.plane.handlers.health import Health
from kardinal_local.plane.handlers.information import Information
from kardinal_local.plane.handlers.questions import Questions
from kardinal_local.plane.handlers.reading import Reading
from kardinal_local.plane.handlers.writing import Writing

__all__ = ["Api", "Health", "Information", "Questions", "Reading", "Writing"]
