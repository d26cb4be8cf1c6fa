"""Server-side apply, and who owns which field.

    ssa                   an apply, and the record of any other write
    managers              the entries of `metadata.managedFields`
    fieldsets             sets of field paths
    shapes                which parts of an object are one value
    changes, typed        two states compared and laid over one another; the fields a configuration speaks of
    last_applied          from `kubectl apply` to `kubectl apply --server-side`

Pure: an object goes in, an object comes out.
"""

from kardinal.localplane.apply.ssa import apply, track_update

__all__ = ["apply", "track_update"]
