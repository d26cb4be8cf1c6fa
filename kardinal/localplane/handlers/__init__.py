"""The answers to requests.

api                                 authentication, authorization, routing, errors
reading, watches                    get, list, watch
writing                             create, update, patch, delete
questions                           what is created only to be answered
information, discovery, openapi     what is served, and what it looks like
"""

from kardinal.localplane.handlers.api import Api
from kardinal.localplane.handlers.information import Information
from kardinal.localplane.handlers.questions import Questions
from kardinal.localplane.handlers.reading import Reading
from kardinal.localplane.handlers.writing import Writing

__all__ = ["Api", "Information", "Questions", "Reading", "Writing"]
