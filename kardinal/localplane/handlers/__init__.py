"""The answers to requests.

api                                 authentication, routing, errors
reading, watches                    get, list, watch
writing                             create, update, patch, delete
information, discovery, openapi     what is served, and what it looks like
"""

from kardinal.localplane.handlers.api import Api
from kardinal.localplane.handlers.information import Information
from kardinal.localplane.handlers.reading import Reading
from kardinal.localplane.handlers.writing import Writing

__all__ = ["Api", "Information", "Reading", "Writing"]
