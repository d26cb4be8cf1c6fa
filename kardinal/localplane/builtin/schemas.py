"""The schemas of the built-in kinds.

They serve what a schema serves for a custom kind: unknown fields are found, absent ones filled in, server-side apply
and strategic merge learn which lists are keyed, `kubectl explain` has something to say. They are no full validation,
which the real server does in code; that limit is documented. Design: local-plane.md 2.3 (built-ins), 5.4.
"""

from __future__ import annotations

from typing import Final

from kardinal.localplane.builtin.builders import (
    anything,
    atomic,
    boolean,
    encoded,
    extended,
    integer,
    keyed,
    listed,
    map_of,
    string,
    struct,
    time,
)
from kardinal.localplane.builtin.metadata import LABEL_SELECTOR
from kardinal.localplane.builtin.pods import LOCAL_REFERENCE
from kardinal.localplane.builtin.workloads import DEPLOYMENT, POD, REPLICA_SET, SERVICE, STATEFUL_SET
from kardinal.localplane.documents import JsonObject

__all__ = ["builtin_schema"]


def builtin_schema(group: str, version: str, kind: str) -> JsonObject | None:
    """The schema of a built-in kind; None for one that is stored as it comes."""
    return _SCHEMAS.get((group, version, kind))


_REFERENCE: Final = atomic(
    struct(
        "One object, or a part of it.",
        apiVersion=string("API version of the object."),
        fieldPath=string("The part of it."),
        kind=string("Kind of the object."),
        name=string("Name of the object."),
        namespace=string("Namespace of the object."),
        resourceVersion=string("The version that is meant."),
        uid=string("Identity of the object."),
    )
)

_CONDITION: Final = struct(
    "What is known of one aspect.",
    needs=("status", "type"),
    lastTransitionTime=time("When the status changed last."),
    message=string("What a person should know."),
    reason=string("Why, in one word."),
    status=string("True, False or Unknown."),
    type=string("Which aspect."),
)

_NAMESPACE: Final = struct(
    "A space for names.",
    spec=struct("The state that is wanted.", finalizers=listed(string(), "What must be done before it may go.")),
    status=struct(
        "The state that was seen.",
        conditions=keyed(_CONDITION, "Conditions by aspect.", by=("type",), merge="type"),
        phase=string("Active or Terminating."),
    ),
)

_CONFIG_MAP: Final = struct(
    "Configuration for pods to use.",
    binaryData=map_of(encoded(), "Bytes by key."),
    data=map_of(string(), "Texts by key."),
    immutable=boolean("Whether the data may not change any more."),
)

_SECRET: Final = struct(
    "Data that not everybody may read.",
    data=map_of(encoded(), "Bytes by key, base64-encoded."),
    immutable=boolean("Whether the data may not change any more."),
    stringData=map_of(string(), "Texts by key, for writing; the server moves them to data."),
    type=string("What kind of secret it is.", default="Opaque"),
)

_SERVICE_ACCOUNT: Final = struct(
    "An identity for programs.",
    automountServiceAccountToken=boolean("Whether pods get a token."),
    imagePullSecrets=listed(LOCAL_REFERENCE, "Secrets to pull images with."),
    secrets=keyed({**_REFERENCE, "required": ["name"]}, "Secrets that its pods may use.", by=("name",), merge="name"),
)

_SOURCE: Final = struct("Who reported it.", component=string("The program."), host=string("The node."))
_SERIES: Final = struct(
    "How often it happened.",
    needs=("count", "lastObservedTime"),
    count=integer("How often."),
    lastObservedTime=time("When it happened last."),
)

_CORE_SERIES: Final = {key: value for key, value in _SERIES.items() if key != "required"}

_CORE_EVENT: Final = struct(
    "Something that happened to an object.",
    needs=("involvedObject",),
    action=string("What was done."),
    count=integer("How often it happened."),
    eventTime=time("When it happened first.") | {"nullable": True},
    firstTimestamp=time("When it happened first.") | {"nullable": True},
    involvedObject=_REFERENCE,
    lastTimestamp=time("When it happened last.") | {"nullable": True},
    message=string("What happened."),
    reason=string("Why, in one word."),
    related=_REFERENCE,
    reportingComponent=string("Who reported it."),
    reportingInstance=string("Which of its instances."),
    series=_CORE_SERIES,
    source=_SOURCE,
    type=string("Normal or Warning."),
)

_EVENT: Final = struct(
    "Something that happened to an object.",
    needs=("eventTime",),
    action=string("What was done.", most=128),
    deprecatedCount=integer("Count of the old API."),
    deprecatedFirstTimestamp=time("First time of the old API.") | {"nullable": True},
    deprecatedLastTimestamp=time("Last time of the old API.") | {"nullable": True},
    deprecatedSource=_SOURCE,
    eventTime=time("When it happened first."),
    note=string("What happened.", most=1024),
    reason=string("Why, in one word.", most=128),
    regarding=_REFERENCE,
    related=_REFERENCE,
    reportingController=string("Who reported it."),
    reportingInstance=string("Which of its instances.", most=128),
    series=_SERIES,
    type=string("Normal or Warning."),
)

_LEASE: Final = struct(
    "A lock that has to be renewed.",
    spec=struct(
        "The state of the lock.",
        acquireTime=time("When it was taken."),
        holderIdentity=string("Who holds it."),
        leaseDurationSeconds=integer("Seconds after which others may take it."),
        leaseTransitions=integer("How often it changed hands."),
        preferredHolder=string("Who should hold it."),
        renewTime=time("When it was renewed last."),
        strategy=string("How its holder is chosen."),
    ),
)

_POLICY_RULE: Final = struct(
    "What may be done to what.",
    needs=("verbs",),
    apiGroups=listed(string(), "API groups; empty is the core group."),
    nonResourceURLs=listed(string(), "URL paths that are no resources."),
    resourceNames=listed(string(), "Names; all when empty."),
    resources=listed(string(), "Resources and subresources."),
    verbs=listed(string(), "What may be done."),
)

_RULES: Final = listed(_POLICY_RULE, "What the role allows.")

_SUBJECTS: Final = listed(
    atomic(
        struct(
            "Somebody.",
            needs=("kind", "name"),
            apiGroup=string("API group of the kind."),
            kind=string("User, Group or ServiceAccount."),
            name=string("The name."),
            namespace=string("Namespace of an account."),
        )
    ),
    "Who is given the role.",
)

_ROLE_REF: Final = atomic(
    struct(
        "The role.",
        needs=("kind", "name"),
        apiGroup=string("API group of the role.", default="rbac.authorization.k8s.io"),
        kind=string("Role or ClusterRole."),
        name=string("Its name."),
    )
)

_ROLE: Final = struct("Rights in one namespace.", rules=_RULES)
_CLUSTER_ROLE: Final = struct(
    "Rights in the whole cluster.",
    aggregationRule=struct(
        "Roles it is made of.", clusterRoleSelectors=listed(LABEL_SELECTOR, "Labels of these roles.")
    ),
    rules=_RULES,
)
_BINDING: Final = struct("Gives a role to somebody.", needs=("roleRef",), roleRef=_ROLE_REF, subjects=_SUBJECTS)

_CRD_CONDITION: Final = extended(
    _CONDITION, {"observedGeneration": integer("Generation that this condition speaks of.", bits=64)}
)

_NAMES: Final = struct(
    "What the kind is called.",
    needs=("kind", "plural"),
    categories=listed(string(), "Groups of kinds, such as all."),
    kind=string("The kind, in CamelCase."),
    listKind=string("The kind of its lists."),
    plural=string("Its plural, as in URLs."),
    shortNames=listed(string(), "Short names for the command line."),
    singular=string("Its singular."),
)

_CRD_VERSION: Final = struct(
    "One version of the kind.",
    needs=("name", "served", "storage"),
    additionalPrinterColumns=listed(
        struct(
            "A column of `kubectl get`.",
            needs=("jsonPath", "name", "type"),
            description=string("What it shows."),
            format=string("How it is written."),
            jsonPath=string("Where its value is."),
            name=string("Its heading."),
            priority=integer("Above zero it is shown with -o wide only."),
            type=string("Type of its value."),
        ),
        "Columns of `kubectl get`.",
    ),
    deprecated=boolean("Whether its use is warned of."),
    deprecationWarning=string("The warning."),
    name=string("Name of the version."),
    schema=struct("What its objects look like.", openAPIV3Schema=anything("An OpenAPI v3 schema.")),
    selectableFields=listed(
        struct("A field.", needs=("jsonPath",), jsonPath=string("Where it is.")), "Fields to select objects by."
    ),
    served=boolean("Whether the API serves it."),
    storage=boolean("Whether objects are stored in it."),
    subresources=struct(
        "What else there is below an object.", scale=anything("Its scale."), status=anything("Its status.")
    ),
)

_CRD: Final = struct(
    "Brings a kind of objects to the API.",
    needs=("spec",),
    spec=struct(
        "The kind.",
        needs=("group", "names", "scope", "versions"),
        conversion=struct(
            "How versions become each other.",
            needs=("strategy",),
            strategy=string("None."),
            webhook=anything("Unused."),
        ),
        group=string("Its API group."),
        names=_NAMES,
        preserveUnknownFields=boolean("No longer allowed."),
        scope=string("Cluster or Namespaced."),
        versions=listed(_CRD_VERSION, "Its versions."),
    ),
    status=struct(
        "The state that was seen.",
        acceptedNames=_NAMES,
        conditions=keyed(_CRD_CONDITION, "Conditions by aspect.", by=("type",)),
        observedGeneration=integer("Generation that this status speaks of.", bits=64),
        storedVersions=listed(string(), "Versions in which objects were ever stored."),
    ),
)

_RBAC: Final = "rbac.authorization.k8s.io"

_SCHEMAS: Final[dict[tuple[str, str, str], JsonObject]] = {
    ("", "v1", "ConfigMap"): _CONFIG_MAP,
    ("", "v1", "Event"): _CORE_EVENT,
    ("", "v1", "Namespace"): _NAMESPACE,
    ("", "v1", "Pod"): POD,
    ("", "v1", "Secret"): _SECRET,
    ("", "v1", "Service"): SERVICE,
    ("", "v1", "ServiceAccount"): _SERVICE_ACCOUNT,
    ("apiextensions.k8s.io", "v1", "CustomResourceDefinition"): _CRD,
    ("apps", "v1", "Deployment"): DEPLOYMENT,
    ("apps", "v1", "ReplicaSet"): REPLICA_SET,
    ("apps", "v1", "StatefulSet"): STATEFUL_SET,
    ("coordination.k8s.io", "v1", "Lease"): _LEASE,
    ("events.k8s.io", "v1", "Event"): _EVENT,
    (_RBAC, "v1", "ClusterRole"): _CLUSTER_ROLE,
    (_RBAC, "v1", "ClusterRoleBinding"): _BINDING,
    (_RBAC, "v1", "Role"): _ROLE,
    (_RBAC, "v1", "RoleBinding"): _BINDING,
}
