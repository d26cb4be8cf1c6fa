"""Containers as a normal manifest writes them: environment, ports, probes, resources, mounts.

Defaults are those of the real server, because people compare what `kubectl get -o yaml` shows; the pull policy has none
here, since it depends on the image's tag. Design: local-plane.md 2.3 (built-ins).
"""

from __future__ import annotations

from typing import Final

from kardinal.localplane.builtin.builders import (
    anything,
    atomic,
    boolean,
    defaulted,
    extended,
    int_or_string,
    integer,
    keyed,
    listed,
    map_of,
    quantity,
    string,
    struct,
)
from kardinal.localplane.documents import JsonObject

__all__ = ["RESOURCES", "container"]


def _key_of(kind: str) -> JsonObject:
    return atomic(
        struct(
            f"One key of a {kind}.",
            needs=("key",),
            key=string("The key."),
            name=string(f"Name of the {kind}.", default=""),
            optional=boolean("Whether it may be missing."),
        )
    )


_ENV: Final = struct(
    "An environment variable.",
    needs=("name",),
    name=string("Name of the variable."),
    value=string("Its value; $(VAR) refers to variables before it."),
    valueFrom=struct(
        "Where the value comes from.",
        configMapKeyRef=_key_of("ConfigMap"),
        fieldRef=atomic(
            struct(
                "A field of the pod.",
                needs=("fieldPath",),
                apiVersion=string("Version of the path.", default="v1"),
                fieldPath=string("Path of the field."),
            )
        ),
        fileKeyRef=anything("A key of a file in a volume."),
        resourceFieldRef=atomic(
            struct(
                "A resource of a container.",
                needs=("resource",),
                containerName=string("Name of the container."),
                divisor=quantity("Unit in which it is given."),
                resource=string("Such as limits.cpu."),
            )
        ),
        secretKeyRef=_key_of("Secret"),
    ),
)

_ENV_SOURCE: Final = struct(
    "All keys of an object as variables.",
    configMapRef=struct(
        "A ConfigMap.", name=string("Its name.", default=""), optional=boolean("Whether it may be missing.")
    ),
    prefix=string("What is put before each key."),
    secretRef=struct("A Secret.", name=string("Its name.", default=""), optional=boolean("Whether it may be missing.")),
)

_PORT: Final = struct(
    "A port that the container listens on.",
    needs=("containerPort",),
    containerPort=integer("Number of the port."),
    hostIP=string("Address of the host to bind."),
    hostPort=integer("Port of the host to bind."),
    name=string("Name by which services refer to it."),
    protocol=string("UDP, TCP or SCTP.", default="TCP"),
)


def _handler(description: str) -> JsonObject:
    return struct(
        description,
        exec=struct("Runs a command in the container.", command=listed(string(), "The command and its arguments.")),
        grpc=struct(
            "Asks the gRPC health service.",
            needs=("port",),
            port=integer("Number of the port."),
            service=string("Name of the service.", default=""),
        ),
        httpGet=struct(
            "Sends a GET request.",
            needs=("port",),
            host=string("Host to connect to; the pod by default."),
            httpHeaders=listed(
                struct("A header.", needs=("name", "value"), name=string("Its name."), value=string("Its value.")),
                "Headers to send.",
            ),
            path=string("Path to ask for."),
            port=int_or_string("Number or name of the port."),
            scheme=string("HTTP or HTTPS.", default="HTTP"),
        ),
        tcpSocket=struct(
            "Opens a connection.",
            needs=("port",),
            host=string("Host to connect to; the pod by default."),
            port=int_or_string("Number or name of the port."),
        ),
    )


def _probe(description: str) -> JsonObject:
    timing = struct(
        failureThreshold=integer("Failures in a row after which the probe has failed.", default=3),
        initialDelaySeconds=integer("Seconds before the first try."),
        periodSeconds=integer("Seconds between tries.", default=10),
        successThreshold=integer("Successes in a row after which it has succeeded.", default=1),
        terminationGracePeriodSeconds=integer("Seconds the pod is given after a failure.", bits=64),
        timeoutSeconds=integer("Seconds one try may take.", default=1),
    )
    return extended(_handler(description), timing["properties"])


RESOURCES: Final[JsonObject] = struct(
    "What the container needs and may use.",
    claims=keyed(
        struct("A claim.", needs=("name",), name=string("Name of the claim."), request=string("Which request.")),
        "Claims that the container uses.",
        by=("name",),
    ),
    limits=map_of(quantity(), "The most it may use."),
    requests=map_of(quantity(), "What it is guaranteed."),
)

_CAPABILITIES: Final = struct(
    "POSIX capabilities.", add=listed(string(), "To add."), drop=listed(string(), "To take away.")
)

_SECURITY: Final = struct(
    "What the container may do.",
    allowPrivilegeEscalation=boolean("Whether a process may gain more privileges than its parent."),
    appArmorProfile=anything("AppArmor options."),
    capabilities=_CAPABILITIES,
    privileged=boolean("Whether it is root on the host."),
    procMount=string("How /proc is mounted."),
    readOnlyRootFilesystem=boolean("Whether its root file system is read-only."),
    runAsGroup=integer("Group id of its process.", bits=64),
    runAsNonRoot=boolean("Whether it must not run as root."),
    runAsUser=integer("User id of its process.", bits=64),
    seLinuxOptions=anything("SELinux labels."),
    seccompProfile=anything("Seccomp options."),
    windowsOptions=anything("Windows options."),
)

_MOUNT: Final = struct(
    "Where a volume appears in the container.",
    needs=("mountPath", "name"),
    mountPath=string("Path in the container."),
    mountPropagation=string("How mounts spread between host and container."),
    name=string("Name of the volume."),
    readOnly=boolean("Whether it is read-only."),
    recursiveReadOnly=string("Whether mounts below are read-only too."),
    subPath=string("Path in the volume."),
    subPathExpr=string("Path in the volume, with variables."),
)


_DEVICE: Final = struct(
    "A raw block device.",
    needs=("devicePath", "name"),
    devicePath=string("Path in the container."),
    name=string("Name of the volume."),
)


def container(description: str) -> JsonObject:
    return struct(
        description,
        needs=("name",),
        args=listed(string(), "Arguments of the entry point."),
        command=listed(string(), "The entry point, instead of the image's."),
        env=keyed(_ENV, "Environment variables.", by=("name",), merge="name"),
        envFrom=listed(_ENV_SOURCE, "Objects whose keys become variables."),
        image=string("The image, as REPOSITORY:TAG or REPOSITORY@DIGEST."),
        imagePullPolicy=string("Always, Never or IfNotPresent."),
        lifecycle=anything("What to run after start and before stop."),
        livenessProbe=_probe("When this fails the container is restarted."),
        name=string("Name of the container, unique in the pod."),
        ports=keyed(_PORT, "Ports that it listens on.", by=("containerPort", "protocol"), merge="containerPort"),
        readinessProbe=_probe("While this fails the pod gets no traffic."),
        resizePolicy=listed(anything("A policy."), "How its resources may be resized."),
        resources=defaulted(RESOURCES, {}),
        restartPolicy=string("When this container is restarted."),
        restartPolicyRules=listed(anything("A rule."), "When this container is restarted, by exit code."),
        securityContext=_SECURITY,
        startupProbe=_probe("Until this succeeds the other probes wait."),
        stdin=boolean("Whether it has a standard input."),
        stdinOnce=boolean("Whether that closes after the first client."),
        terminationMessagePath=string("File with its last words.", default="/dev/termination-log"),
        terminationMessagePolicy=string("Where its last words come from.", default="File"),
        tty=boolean("Whether it has a terminal."),
        volumeDevices=keyed(_DEVICE, "Block devices.", by=("devicePath",), merge="devicePath"),
        volumeMounts=keyed(_MOUNT, "Volumes and where they appear.", by=("mountPath",), merge="mountPath"),
        workingDir=string("Its working directory."),
    )
