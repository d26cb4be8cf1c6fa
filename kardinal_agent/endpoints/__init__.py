"""The HTTP endpoints of custom steps: where they may be, what is sent to them, and what their answers mean.

addresses       which hosts and which addresses are contacted
client          one request
payload         the body and the headers of a request
answers         what an answer means
credentials     what of a Secret is sent
"""

from kardinal_agent.endpoints.addresses import StepHosts
from kardinal_agent.endpoints.answers import Accepted, Verdict
from kardinal_agent.endpoints.client import EndpointClient
from kardinal_agent.endpoints.credentials import EndpointCredentials, EndpointSecrets

__all__ = ["Accepted", "EndpointClient", "EndpointCredentials", "EndpointSecrets", "StepHosts", "Verdict"]
