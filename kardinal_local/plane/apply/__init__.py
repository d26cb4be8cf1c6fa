"""Server-side apply and the ownership of fields.

    ssa                   an apply, and the record of any other write
    managers              the entries of `metadata.managedFields`
    fieldsets             sets of field paths
    types, elements       which parts of an object are one value, and by what the elements of a list are known
    typed                 the fields a configuration speaks of
    compare, merge        two states compared, and laid over one another
    prune                 what goes because it is applied no more
    settled               claims made under another schema
    scales                the same of the scale of an object
    last_applied          from `kubectl apply` to `kubectl apply --server-side`

Pure: an object goes in, an object comes out.
"""

from kardinal_local.plane.apply.fieldsets import FieldSet
from kardinal_local.plane.apply.scales import object_record, scale_record, taken_record
from kardinal_local.plane.apply.ssa import Writer, apply, track_update
from kardinal_local.plane.apply.typed import conforms

__all__ = ["FieldSet", "Writer", "apply", "conforms", "object_record", "scale_record", "taken_record", "track_update"]
