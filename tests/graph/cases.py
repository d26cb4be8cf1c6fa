"""The cases of the Graph engine: what comes of a Graph and of what happens beside it, as its author sees that.

A test of a case carries its id in the mark `case`, and runs the engine on an API server, the local plane or a real one.
Ids are never given again, so that some numbers are missing.
"""

from __future__ import annotations

__all__ = ["CASES"]

CASES = {
    # Basics
    "A01": "a template makes its object in the namespace of the Graph, with the marks of its node",
    "A02": "a node comes after the one that its expressions mention, wherever it is declared",
    "A03": "an expression that is the whole value keeps its type, and copies maps whole",
    "A04": "several expressions in one value make one text",
    "A05": "labels in brackets and words that CEL reserves are fields like others",
    "A06": "an escaped expression stays text, and is not scanned in a later walk",
    "A07": "braces in literals do not end an expression",
    "A08": "an expression for another program, without ${}, is copied as it is",
    "A09": "data that looks like an expression stays data",
    "A10": "a Graph without nodes is valid and Ready",
    # Validation
    "A11": "a cycle is refused with its path, and nothing is made",
    "A12": "a cycle through includeWhen and forEach is one, too",
    "A13": "an unknown name is refused with node, field and suggestion, and other nodes make nothing either",
    "A14": "ids are unique without regard to case, no reserved words, and letters and digits alone",
    "A15": "a node has exactly one body and no word that is not known",
    "A16": "an expression that cannot be read, in the last condition of the last node, stops all nodes",
    "A17": "all that is wrong is said at once",
    "A18": "an invalid generation leaves the last valid one in force, and corrections go on",
    "A19": "the next valid generation changes what differs, and makes no unchanged object again",
    "A20": "the variable of a comprehension that has the id of a node is no reference",
    # Data and readiness
    "A22": "a node waits for a field, says for which, and goes on once it is there",
    "A23": "readyWhen holds no other node",
    "A24": "readyWhen that fails or finds no data is NotReady and no Error",
    "A26": "a change that no expression reads writes nothing",
    "A27": "a refused object blocks its dependents and no other node",
    "A28": "once it is accepted, its dependents go on by themselves",
    "A29": "a soft reference has its default while there is no object, and the value after that",
    "A30": "an optional without a value leaves its field out",
    "A31": "has() on absent data waits in a body and is false in readyWhen",
    # propagateWhen
    "A32": "an environment follows once the one before is Verified, and nothing else changes",
    "A33": "a step waits for all its gates, which are named, and is made when the last one opens",
    "A34": "a gate that closes again keeps the object as it is; when it opens, current data is applied",
    "A37": "a gate that asks whether another node is ready holds its own node, also as it is when that is no longer so",
    "A38": "a gate whose expression fails is closed, with the reason, and no Error",
    "A40": "a soft reference is not held by a gate",
    "A42": "an excluded dependency counts more than closed gates",
    "A43": "only what stands behind the gate waits",
    # includeWhen
    "A45": "a node that is not included makes nothing, nor does what follows it, and both are ignored for Ready",
    "A46": "a node that is no longer included is deleted, after its dependents",
    "A49": "an environment that a Bundle skips is left out, and what follows depends on the one before",
    # ref, watch and kinds
    "A50": "a ref waits for its object, and does not prune its dependents when it goes",
    "A51": "a template of an identity alone reads an existing object, writes nothing to it, and says so",
    "A52": "the same of an absent object makes it, and it goes with the Graph",
    "A53": "a watch is the list of what has the labels, in order of names, as objects come, change and go",
    "A54": "a watch with readyWhen that selects nothing is NotReady",
    "A57": "a kind that is not installed is waited for, without an edit of the Graph",
    "A55": "a patch waits for its object, sets its fields, and gives them up with the Graph; the object stays",
    "A56": "a patch of status is written to the subresource, and nothing else is touched",
    # forEach
    "A58": "each item has its object, and other nodes read the list",
    "A59": "another order of the list writes and deletes nothing",
    "A60": "an item that goes takes its object along, and no other",
    "A63": "a list alone has the variable item, and two variables are refused",
    "A65": "one refused object does not stop the others of its list; dependents are blocked",
    "A66": "a list of too many items makes nothing",
    # Ownership
    "A67": "a changed field of a template is corrected, and fields of others are left alone",
    "A68": "a deleted object is made again, and its dependents have its new data",
    "A69": "a field of another manager is a Conflict that names both, unless the node takes it by force",
    # Deletion
    "A73": "a removed node is deleted after its dependents; one with another id keeps its object",
    "A74": "a deleted Graph takes its objects along in reverse order, waits for finalizers, and says for which",
    "A76": "a hook makes its object once the Graph is deleted, and its node goes after that is ready, and before it",
    "A77": "a hook that is not ready keeps its node, and says so; one that is taken out of the spec does not",
    "A78": "a deleted Bundle takes its Graph, steps and gates along",
    # Revisions, nesting and failures
    "A80": "nodes in another order are no change",
    "A82": "a Graph for each item evaluates its own expressions, and goes with its objects when the item goes",
    "A84": "no value of a Secret is in a status, an Event or the log",
    "A86": "Graphs of two Bundles run beside each other",
    "A87": "while the API server fails for one object, the others are made; then that one is made, once",
    "A89": "a walk of any Graph after any events finds what a new engine finds",
    "A90": "many Graphs of twenty nodes start within a tenth of a second of CPU each, and write nothing afterwards",
}
"""Id -> what has to be."""
