"""Pods as a normal manifest writes them: containers, volumes, where they may run.

Parts that few manifests of an application set (affinity, rare volume sources) keep their content as it is.
Design: local-plane.md 2.3 (built-ins).
"""

from __future__ import annotations

from typing import Final

from kardinal.localplane.builtin.builders import (
    anything,
    atomic,
    boolean,
    defaulted,
    extended,
    integer,
    keyed,
    listed,
    map_of,
    quantity,
    retaining,
    string,
    struct,
)
from kardinal.localplane.builtin.containers import RESOURCES, container
from kardinal.localplane.builtin.metadata import LABEL_SELECTOR, OBJECT_META
from kardinal.localplane.documents import JsonObject

__all__ = ["LOCAL_REFERENCE", "POD_SPEC", "POD_TEMPLATE"]

LOCAL_REFERENCE: Final[JsonObject] = atomic(
    struct("An object in the same namespace.", name=string("Its name.", default=""))
)


_ITEMS: Final = listed(
    struct(
        "A key as a file.",
        needs=("key", "path"),
        key=string("The key."),
        mode=integer("Mode of the file."),
        path=string("Its path in the volume."),
    ),
    "Keys to show, and under which path; all by default.",
)

_VOLUME: Final = struct(
    "A volume: its name and one source.",
    needs=("name",),
    configMap=struct(
        "The keys of a ConfigMap as files.",
        defaultMode=integer("Mode of the files.", default=420),
        items=_ITEMS,
        name=string("Name of the ConfigMap.", default=""),
        optional=boolean("Whether it may be missing."),
    ),
    emptyDir=struct(
        "A directory that lives as long as the pod.",
        medium=string("Empty for disk, Memory for RAM."),
        sizeLimit=quantity("The most it may hold."),
    ),
    hostPath=struct(
        "A path of the host.", needs=("path",), path=string("The path."), type=string("What it must be.", default="")
    ),
    name=string("Name by which mounts refer to it."),
    persistentVolumeClaim=struct(
        "A claim to a persistent volume.",
        needs=("claimName",),
        claimName=string("Name of the claim."),
        readOnly=boolean("Whether it is read-only."),
    ),
    projected=struct(
        "Several sources in one directory.",
        defaultMode=integer("Mode of the files.", default=420),
        sources=listed(anything("A source."), "The sources."),
    ),
    secret=struct(
        "The keys of a Secret as files.",
        defaultMode=integer("Mode of the files.", default=420),
        items=_ITEMS,
        optional=boolean("Whether it may be missing."),
        secretName=string("Name of the Secret."),
    ),
) | {"x-kubernetes-preserve-unknown-fields": True}

_VOLUMES: Final = retaining(keyed(_VOLUME, "Volumes that containers mount.", by=("name",), merge="name"))

_SPREAD: Final = struct(
    "How pods spread over one kind of place.",
    needs=("maxSkew", "topologyKey", "whenUnsatisfiable"),
    labelSelector=LABEL_SELECTOR,
    matchLabelKeys=listed(string(), "Labels whose values must be equal."),
    maxSkew=integer("How uneven it may be."),
    minDomains=integer("Least number of places."),
    nodeAffinityPolicy=string("Whether node affinity counts."),
    nodeTaintsPolicy=string("Whether taints count."),
    topologyKey=string("Label of a node that names its place."),
    whenUnsatisfiable=string("DoNotSchedule or ScheduleAnyway."),
)

_TOLERATION: Final = struct(
    "A taint that the pod bears.",
    effect=string("Which effect; all when empty."),
    key=string("Which key; all when empty."),
    operator=string("Exists or Equal."),
    tolerationSeconds=integer("How long it bears NoExecute.", bits=64),
    value=string("Which value."),
)

_POD_SECURITY: Final = struct(
    "What all containers of the pod may do.",
    appArmorProfile=anything("AppArmor options."),
    fsGroup=integer("Group id that owns the volumes.", bits=64),
    fsGroupChangePolicy=string("When ownership of volumes is changed."),
    runAsGroup=integer("Group id of their processes.", bits=64),
    runAsNonRoot=boolean("Whether they must not run as root."),
    runAsUser=integer("User id of their processes.", bits=64),
    seLinuxChangePolicy=string("How SELinux labels of volumes are changed."),
    seLinuxOptions=anything("SELinux labels."),
    seccompProfile=anything("Seccomp options."),
    supplementalGroups=listed(integer(bits=64), "More groups of their processes."),
    supplementalGroupsPolicy=string("How those groups are computed."),
    sysctls=listed(anything("A kernel parameter."), "Kernel parameters."),
    windowsOptions=anything("Windows options."),
)

POD_SPEC: Final[JsonObject] = struct(
    "What the pod is made of.",
    needs=("containers",),
    activeDeadlineSeconds=integer("Seconds after which the pod is ended.", bits=64),
    affinity=anything("Which nodes and neighbours the pod prefers or needs."),
    automountServiceAccountToken=boolean("Whether a token of its account is mounted."),
    containers=keyed(container("A container of the pod."), "The containers; at least one.", by=("name",), merge="name"),
    dnsConfig=anything("DNS options."),
    dnsPolicy=string("How names are resolved.", default="ClusterFirst"),
    enableServiceLinks=boolean("Whether services appear as variables."),
    ephemeralContainers=keyed(
        extended(
            container("A container for debugging."), {"targetContainerName": string("Whose namespaces it shares.")}
        ),
        "Containers added for debugging.",
        by=("name",),
        merge="name",
    ),
    hostAliases=keyed(
        struct(
            "Names of one address.",
            needs=("ip",),
            hostnames=listed(string(), "The names."),
            ip=string("The address."),
        ),
        "More entries of /etc/hosts.",
        by=("ip",),
        merge="ip",
    ),
    hostIPC=boolean("Whether the pod uses the host's IPC namespace."),
    hostNetwork=boolean("Whether the pod uses the host's network."),
    hostPID=boolean("Whether the pod uses the host's processes."),
    hostUsers=boolean("Whether the pod uses the host's users."),
    hostname=string("Its host name."),
    hostnameOverride=string("Its host name as it sees it."),
    imagePullSecrets=keyed(LOCAL_REFERENCE, "Secrets to pull images with.", by=("name",), merge="name"),
    initContainers=keyed(
        container("A container that runs first."), "Containers that run before.", by=("name",), merge="name"
    ),
    nodeName=string("The node it runs on."),
    nodeSelector=atomic(map_of(string(), "Labels that the node must have.")),
    os=anything("The operating system it needs."),
    overhead=map_of(quantity(), "Resources for the pod itself."),
    preemptionPolicy=string("Whether it may displace others."),
    priority=integer("Its priority as a number."),
    priorityClassName=string("Its priority by name."),
    readinessGates=listed(anything("A condition."), "More conditions of its readiness."),
    resourceClaims=retaining(
        keyed(
            struct(
                "A claim.",
                needs=("name",),
                name=string("Its name."),
                resourceClaimName=string("Name of the claim."),
                resourceClaimTemplateName=string("Name of its template."),
            ),
            "Claims that its containers use.",
            by=("name",),
            merge="name",
        )
    ),
    resources=RESOURCES,
    restartPolicy=string("Always, OnFailure or Never.", default="Always"),
    runtimeClassName=string("How it is run."),
    schedulerName=string("Who finds a node for it.", default="default-scheduler"),
    schedulingGroup=anything("Pods that are placed together."),
    schedulingGates=keyed(
        struct("A gate.", needs=("name",), name=string("Its name.")),
        "Gates that hold back its scheduling.",
        by=("name",),
        merge="name",
    ),
    securityContext=defaulted(_POD_SECURITY, {}),
    serviceAccount=string("Old name of serviceAccountName."),
    serviceAccountName=string("The account it runs as."),
    setHostnameAsFQDN=boolean("Whether its host name is fully qualified."),
    shareProcessNamespace=boolean("Whether its containers see each other's processes."),
    subdomain=string("Its subdomain."),
    terminationGracePeriodSeconds=integer("Seconds it is given to stop.", default=30, bits=64),
    tolerations=listed(_TOLERATION, "Taints that it bears."),
    topologySpreadConstraints=keyed(
        _SPREAD, "How its pods spread.", by=("topologyKey", "whenUnsatisfiable"), merge="topologyKey"
    ),
    volumes=_VOLUMES,
)

POD_TEMPLATE: Final[JsonObject] = struct("The pods to make.", metadata=OBJECT_META, spec=POD_SPEC)
