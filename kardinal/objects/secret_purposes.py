"""The label of a Secret with its purpose, and the annotation with the hosts that it may be sent to."""

from __future__ import annotations

__all__ = [
    "ANNOTATION_HOSTS",
    "CREDENTIALS_GIT",
    "CREDENTIALS_KUBECONFIG",
    "CREDENTIALS_METRICS",
    "CREDENTIALS_REGISTRY",
    "CREDENTIALS_SIGNING",
    "CREDENTIALS_STEP",
    "CREDENTIALS_WEBHOOK",
    "LABEL_CREDENTIALS",
]

LABEL_CREDENTIALS = "kardinal.io/credentials"
"""On a Secret: the purpose its credentials may be used for."""
CREDENTIALS_GIT = "git"
"""The value of `LABEL_CREDENTIALS` on a Secret that may be sent to Git hosts."""
CREDENTIALS_SIGNING = "git-signing"
"""The value of `LABEL_CREDENTIALS` on a Secret whose key signs commits."""
CREDENTIALS_KUBECONFIG = "kubeconfig"
"""The value of `LABEL_CREDENTIALS` on a Secret with the kubeconfig of a cluster that environments are proved in."""
CREDENTIALS_METRICS = "metrics"
"""The value of `LABEL_CREDENTIALS` on a Secret that may be sent to metric servers."""
CREDENTIALS_WEBHOOK = "webhook"
"""The value of `LABEL_CREDENTIALS` on a Secret whose `webhookSecret` signs the deliveries of a Git host."""
CREDENTIALS_REGISTRY = "registry"
"""The value of `LABEL_CREDENTIALS` on a Secret that may be sent to image registries."""
CREDENTIALS_STEP = "step"
"""The value of `LABEL_CREDENTIALS` on a Secret that may be sent to the endpoints of custom steps."""
ANNOTATION_HOSTS = "kardinal.io/hosts"
"""On a Secret: the hosts, `host[:port]` separated by commas, that it may be sent to."""
