"""The HTTP endpoints of custom steps: permitted addresses, requests and answers.

addresses       which hosts and addresses may be contacted
client          one request
payload         the body and the headers of a request
answers         the parsed answer
credentials     the token and the signing key from a Secret
"""

from kardinal_agent.endpoints.addresses import StepHosts
from kardinal_agent.endpoints.answers import Accepted, Completed
from kardinal_agent.endpoints.client import EndpointClient
from kardinal_agent.endpoints.credentials import EndpointCredentials, EndpointSecrets

__all__ = ["Accepted", "Completed", "EndpointClient", "EndpointCredentials", "EndpointSecrets", "StepHosts"]
