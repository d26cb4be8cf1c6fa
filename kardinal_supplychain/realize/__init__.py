"""From a template and its inputs to an object, and from a live object to outputs, health and conditions (pure).

context       the values that the tags of a template read
interpolate   `$(path)$` in the strings of a template
plan          what is to be done for an owner
resource_state   the state of a resource, read from its object or its runs
stamp         the object of a resource, with its namespace, labels, owner reference and hashes
runs          whether the last run is kept, or a new one made
retention     the runs that are deleted
orphans       the objects that an owner no longer asks for
runnable      the values, outputs and conditions of a Runnable
bundle        the Bundle of a resource, and when another one is due
outputs       the outputs of a stamped object, with preview and digest
preview       a value as YAML, as the status shows it
health        the health of a stamped object
conditions    the conditions of resources and owners
templates     problems of a template
"""
