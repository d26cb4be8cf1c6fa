"""Workloads and the service in front of them. Nothing here runs a pod; the plane keeps their records.

Design: local-plane.md 2.3 (built-ins), 5.4.
"""

from __future__ import annotations

from typing import Final

from kardinal.localplane.builtin.builders import (
    anything,
    atomic,
    boolean,
    defaulted,
    int_or_string,
    integer,
    keyed,
    listed,
    map_of,
    retaining,
    string,
    struct,
    time,
)
from kardinal.localplane.builtin.metadata import LABEL_SELECTOR
from kardinal.localplane.builtin.pods import POD_SPEC, POD_TEMPLATE
from kardinal.localplane.documents import JsonObject

__all__ = ["DEPLOYMENT", "POD", "REPLICA_SET", "SERVICE", "STATEFUL_SET"]


def _conditions(**more: JsonObject) -> JsonObject:
    condition = struct(
        "What is known of one aspect.",
        needs=("status", "type"),
        lastTransitionTime=time("When the status changed last."),
        message=string("What a person should know."),
        reason=string("Why, in one word."),
        status=string("True, False or Unknown."),
        type=string("Which aspect."),
        **more,
    )
    return keyed(condition, "Conditions by aspect.", by=("type",), merge="type")


DEPLOYMENT: Final[JsonObject] = struct(
    "Keeps a number of equal pods running and changes them step by step.",
    spec=struct(
        "The state that is wanted.",
        needs=("selector", "template"),
        minReadySeconds=integer("Seconds a pod must be ready to be available."),
        paused=boolean("Whether changes wait."),
        progressDeadlineSeconds=integer("Seconds without progress after which a rollout has failed.", default=600),
        replicas=integer("How many pods.", default=1),
        revisionHistoryLimit=integer("How many old ReplicaSets are kept.", default=10),
        selector=LABEL_SELECTOR,
        strategy=defaulted(
            retaining(
                struct(
                    "How old pods are replaced.",
                    rollingUpdate=struct(
                        "Limits of a rolling update.",
                        maxSurge=int_or_string("How many pods more than wanted."),
                        maxUnavailable=int_or_string("How many pods fewer than wanted."),
                    ),
                    type=string("Recreate or RollingUpdate."),
                )
            ),
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
        ),
        template=POD_TEMPLATE,
    ),
    status=struct(
        "The state that was seen.",
        availableReplicas=integer("Pods that are available."),
        collisionCount=integer("How often a name was taken."),
        conditions=_conditions(lastUpdateTime=time("When the condition was written last.")),
        observedGeneration=integer("Generation that this status speaks of.", bits=64),
        readyReplicas=integer("Pods that are ready."),
        replicas=integer("Pods that exist."),
        terminatingReplicas=integer("Pods that are ending."),
        unavailableReplicas=integer("Pods that are still missing."),
        updatedReplicas=integer("Pods of the current template."),
    ),
)

REPLICA_SET: Final[JsonObject] = struct(
    "Keeps a number of equal pods running.",
    spec=struct(
        "The state that is wanted.",
        needs=("selector",),
        minReadySeconds=integer("Seconds a pod must be ready to be available."),
        replicas=integer("How many pods.", default=1),
        selector=LABEL_SELECTOR,
        template=POD_TEMPLATE,
    ),
    status=struct(
        "The state that was seen.",
        availableReplicas=integer("Pods that are available."),
        conditions=_conditions(),
        fullyLabeledReplicas=integer("Pods with all labels of the template."),
        observedGeneration=integer("Generation that this status speaks of.", bits=64),
        readyReplicas=integer("Pods that are ready."),
        replicas=integer("Pods that exist."),
        terminatingReplicas=integer("Pods that are ending."),
    ),
)

STATEFUL_SET: Final[JsonObject] = struct(
    "Keeps pods with a lasting identity and storage.",
    spec=struct(
        "The state that is wanted.",
        needs=("selector", "template"),
        minReadySeconds=integer("Seconds a pod must be ready to be available."),
        ordinals=struct("How pods are numbered.", start=integer("The first number.")),
        persistentVolumeClaimRetentionPolicy=struct(
            "What becomes of claims.", whenDeleted=string("On deletion."), whenScaled=string("On scaling down.")
        ),
        podManagementPolicy=string("OrderedReady or Parallel.", default="OrderedReady"),
        replicas=integer("How many pods.", default=1),
        revisionHistoryLimit=integer("How many revisions are kept.", default=10),
        selector=LABEL_SELECTOR,
        serviceName=string("The service that gives its pods their names."),
        template=POD_TEMPLATE,
        updateStrategy=defaulted(
            struct(
                "How pods are replaced.",
                rollingUpdate=struct(
                    "Limits of a rolling update.",
                    maxUnavailable=int_or_string("How many pods fewer than wanted."),
                    partition=integer("Pods below this number stay."),
                ),
                type=string("OnDelete or RollingUpdate."),
            ),
            {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        ),
        volumeClaimTemplates=listed(anything("A claim."), "Claims made for each pod."),
    ),
    status=struct(
        "The state that was seen.",
        availableReplicas=integer("Pods that are available."),
        collisionCount=integer("How often a name was taken."),
        conditions=_conditions(),
        currentReplicas=integer("Pods of the current revision."),
        currentRevision=string("The current revision."),
        observedGeneration=integer("Generation that this status speaks of.", bits=64),
        readyReplicas=integer("Pods that are ready."),
        replicas=integer("Pods that exist."),
        updateRevision=string("The revision to come."),
        updatedReplicas=integer("Pods of the revision to come."),
    ),
)

POD: Final[JsonObject] = struct(
    "Containers that run together on one node.",
    spec=POD_SPEC,
    status=anything("The state that was seen."),
)

_SERVICE_PORT: Final = struct(
    "A port of the service.",
    needs=("port",),
    appProtocol=string("The protocol above TCP."),
    name=string("Its name; needed when there are several."),
    nodePort=integer("Port of the nodes."),
    port=integer("Number of the port."),
    protocol=string("UDP, TCP or SCTP.", default="TCP"),
    targetPort=int_or_string("Number or name of the pods' port."),
)

SERVICE: Final[JsonObject] = struct(
    "One name and address for a set of pods.",
    spec=struct(
        "The state that is wanted.",
        allocateLoadBalancerNodePorts=boolean("Whether a load balancer gets node ports."),
        clusterIP=string("Its address, or None."),
        clusterIPs=listed(string(), "Its addresses."),
        externalIPs=listed(string(), "More addresses."),
        externalName=string("The name it stands for."),
        externalTrafficPolicy=string("Cluster or Local."),
        healthCheckNodePort=integer("Port of the nodes' health check."),
        internalTrafficPolicy=string("Cluster or Local.", default="Cluster"),
        ipFamilies=listed(string(), "IPv4, IPv6 or both."),
        ipFamilyPolicy=string("How families are chosen."),
        loadBalancerClass=string("Whose load balancer."),
        loadBalancerIP=string("Address wanted of the load balancer."),
        loadBalancerSourceRanges=listed(string(), "Who may reach the load balancer."),
        ports=keyed(_SERVICE_PORT, "Its ports.", by=("port", "protocol"), merge="port"),
        publishNotReadyAddresses=boolean("Whether pods count before they are ready."),
        selector=atomic(map_of(string(), "Labels of its pods.")),
        sessionAffinity=string("ClientIP or None.", default="None"),
        sessionAffinityConfig=anything("Limits of session affinity."),
        trafficDistribution=string("Which pods are preferred."),
        type=string("ClusterIP, NodePort, LoadBalancer or ExternalName.", default="ClusterIP"),
    ),
    status=struct(
        "The state that was seen.",
        conditions=_conditions(observedGeneration=integer("Generation it speaks of.", bits=64)),
        loadBalancer=struct("The load balancer.", ingress=listed(anything("An address."), "Its addresses.")),
    ),
)
