"""The field numbers of the messages that typed clients send.

One line per message: `NUMBER NAME TYPE`, separated by semicolons. Types:

    s i b x    string, integer, boolean, bytes; the empty value means "not set" and is dropped
    S I B      the same behind a Go pointer: the empty value is a value
    t u        Time and MicroTime
    j          bytes that hold JSON
    Name       another message of this table
    [T]        a list of T
    {T}        a map from strings to T

The numbers are part of Kubernetes' API and never change; new fields get new ones, which the decoder reports by name of
the message instead of dropping them. Design: local-plane.md 2.2 (item 1).
"""

from __future__ import annotations

from typing import Final

__all__ = ["KINDS", "MESSAGES"]

MESSAGES: Final[dict[str, str]] = {
    "ObjectMeta": "1 name s; 2 generateName s; 3 namespace s; 4 selfLink s; 5 uid s; 6 resourceVersion s; "
    "7 generation i; 8 creationTimestamp t; 9 deletionTimestamp t; 10 deletionGracePeriodSeconds I; 11 labels {s}; "
    "12 annotations {s}; 13 ownerReferences [OwnerReference]; 14 finalizers [s]; 17 managedFields [ManagedFieldsEntry]",
    "OwnerReference": "1 kind s; 3 name s; 4 uid s; 5 apiVersion s; 6 controller B; 7 blockOwnerDeletion B",
    "ManagedFieldsEntry": "1 manager s; 2 operation s; 3 apiVersion s; 4 time t; 6 fieldsType s; 7 fieldsV1 FieldsV1; "
    "8 subresource s",
    "FieldsV1": "1 raw j",
    "LabelSelector": "1 matchLabels {s}; 2 matchExpressions [LabelSelectorRequirement]",
    "LabelSelectorRequirement": "1 key s; 2 operator s; 3 values [s]",
    "DeleteOptions": "1 gracePeriodSeconds I; 2 preconditions Preconditions; 3 orphanDependents B; "
    "4 propagationPolicy S; 5 dryRun [s]; 6 ignoreStoreReadErrorWithClusterBreakingPotential B",
    "Preconditions": "1 uid S; 2 resourceVersion S",
    "ObjectReference": "1 kind s; 2 namespace s; 3 name s; 4 uid s; 5 apiVersion s; 6 resourceVersion s; 7 fieldPath s",
    "LocalObjectReference": "1 name s",
    "Namespace": "1 metadata ObjectMeta; 2 spec NamespaceSpec; 3 status NamespaceStatus",
    "NamespaceSpec": "1 finalizers [s]",
    "NamespaceStatus": "1 phase s; 2 conditions [NamespaceCondition]",
    "NamespaceCondition": "1 type s; 2 status s; 4 lastTransitionTime t; 5 reason s; 6 message s",
    "ConfigMap": "1 metadata ObjectMeta; 2 data {s}; 3 binaryData {x}; 4 immutable B",
    "Secret": "1 metadata ObjectMeta; 2 data {x}; 3 type s; 4 stringData {s}; 5 immutable B",
    "ServiceAccount": "1 metadata ObjectMeta; 2 secrets [ObjectReference]; 3 imagePullSecrets [LocalObjectReference]; "
    "4 automountServiceAccountToken B",
    "EventSource": "1 component s; 2 host s",
    "EventSeries": "1 count i; 2 lastObservedTime u",
    "CoreEvent": "1 metadata ObjectMeta; 2 involvedObject ObjectReference; 3 reason s; 4 message s; "
    "5 source EventSource; 6 firstTimestamp t; 7 lastTimestamp t; 8 count i; 9 type s; 10 eventTime u; "
    "11 series EventSeries; 12 action s; 13 related ObjectReference; 14 reportingComponent s; 15 reportingInstance s",
    "Event": "1 metadata ObjectMeta; 2 eventTime u; 3 series EventSeries; 4 reportingController s; "
    "5 reportingInstance s; 6 action s; 7 reason s; 8 regarding ObjectReference; 9 related ObjectReference; 10 note s; "
    "11 type s; 12 deprecatedSource EventSource; 13 deprecatedFirstTimestamp t; 14 deprecatedLastTimestamp t; "
    "15 deprecatedCount i",
    "Lease": "1 metadata ObjectMeta; 2 spec LeaseSpec",
    "LeaseSpec": "1 holderIdentity S; 2 leaseDurationSeconds I; 3 acquireTime u; 4 renewTime u; 5 leaseTransitions I; "
    "6 strategy S; 7 preferredHolder S",
    "Role": "1 metadata ObjectMeta; 2 rules [PolicyRule]",
    "ClusterRole": "1 metadata ObjectMeta; 2 rules [PolicyRule]; 3 aggregationRule AggregationRule",
    "AggregationRule": "1 clusterRoleSelectors [LabelSelector]",
    "PolicyRule": "1 verbs [s]; 2 apiGroups [s]; 3 resources [s]; 4 resourceNames [s]; 5 nonResourceURLs [s]",
    "Binding": "1 metadata ObjectMeta; 2 subjects [Subject]; 3 roleRef RoleRef",
    "Subject": "1 kind s; 2 apiGroup s; 3 name s; 4 namespace s",
    "RoleRef": "1 apiGroup s; 2 kind s; 3 name s",
    "SelfSubjectAccessReview": "1 metadata ObjectMeta; 2 spec SelfSubjectAccessReviewSpec; "
    "3 status SubjectAccessReviewStatus",
    "SelfSubjectAccessReviewSpec": "1 resourceAttributes ResourceAttributes; "
    "2 nonResourceAttributes NonResourceAttributes",
    "SubjectAccessReview": "1 metadata ObjectMeta; 2 spec SubjectAccessReviewSpec; 3 status SubjectAccessReviewStatus",
    "SubjectAccessReviewSpec": "1 resourceAttributes ResourceAttributes; "
    "2 nonResourceAttributes NonResourceAttributes; 3 user s; 4 groups [s]; 5 extra {ExtraValue}; 6 uid s",
    "SubjectAccessReviewStatus": "1 allowed b; 2 reason s; 3 evaluationError s; 4 denied b",
    "ResourceAttributes": "1 namespace s; 2 verb s; 3 group s; 4 version s; 5 resource s; 6 subresource s; 7 name s; "
    "8 fieldSelector SelectorAttributes; 9 labelSelector SelectorAttributes",
    "SelectorAttributes": "1 rawSelector s; 2 requirements [LabelSelectorRequirement]",
    "NonResourceAttributes": "1 path s; 2 verb s",
    "SelfSubjectRulesReview": "1 metadata ObjectMeta; 2 spec SelfSubjectRulesReviewSpec; "
    "3 status SubjectRulesReviewStatus",
    "SelfSubjectRulesReviewSpec": "1 namespace s",
    "SubjectRulesReviewStatus": "3 incomplete b; 4 evaluationError s",
    "SelfSubjectReview": "1 metadata ObjectMeta; 2 status SelfSubjectReviewStatus",
    "SelfSubjectReviewStatus": "1 userInfo UserInfo",
    "UserInfo": "1 username s; 2 uid s; 3 groups [s]; 4 extra {ExtraValue}",
    "ExtraValue": "1 items [s]",
    "TokenReview": "1 metadata ObjectMeta; 2 spec TokenReviewSpec; 3 status TokenReviewStatus",
    "TokenReviewSpec": "1 token s; 2 audiences [s]",
    "TokenReviewStatus": "1 authenticated b; 2 user UserInfo; 3 error s; 4 audiences [s]",
    "TokenRequest": "1 metadata ObjectMeta; 2 spec TokenRequestSpec; 3 status TokenRequestStatus",
    "TokenRequestSpec": "1 audiences [s]; 3 boundObjectRef BoundObjectReference; 4 expirationSeconds I",
    "TokenRequestStatus": "1 token s; 2 expirationTimestamp t",
    "BoundObjectReference": "1 kind s; 2 apiVersion s; 3 name s; 4 uid s",
}

KINDS: Final[dict[tuple[str, str], str]] = {
    ("v1", "ConfigMap"): "ConfigMap",
    ("v1", "Event"): "CoreEvent",
    ("v1", "Namespace"): "Namespace",
    ("v1", "Secret"): "Secret",
    ("v1", "ServiceAccount"): "ServiceAccount",
    ("authentication.k8s.io/v1", "SelfSubjectReview"): "SelfSubjectReview",
    ("authentication.k8s.io/v1", "TokenRequest"): "TokenRequest",
    ("authentication.k8s.io/v1", "TokenReview"): "TokenReview",
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview"): "SubjectAccessReview",
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"): "SelfSubjectAccessReview",
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"): "SelfSubjectRulesReview",
    ("authorization.k8s.io/v1", "SubjectAccessReview"): "SubjectAccessReview",
    ("coordination.k8s.io/v1", "Lease"): "Lease",
    ("events.k8s.io/v1", "Event"): "Event",
    ("rbac.authorization.k8s.io/v1", "ClusterRole"): "ClusterRole",
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"): "Binding",
    ("rbac.authorization.k8s.io/v1", "Role"): "Role",
    ("rbac.authorization.k8s.io/v1", "RoleBinding"): "Binding",
}
"""The message of each kind. DeleteOptions exist in every group, and so are not listed here."""
