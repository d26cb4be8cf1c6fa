"""Store objects and their revisions: the present, the recent history, and the file that survives the process.

    store        what those who change objects use         committed    what those who read them use
    committers   when a write is on disk                    history      the recent changes, and those who follow them
    index        objects by name, UID and owner             entries      one object, one change
    database     the file                                   formats      what it looked like in earlier versions

Knows no kind and no request.
"""

from kardinal_local.plane.storage.committed import Committed
from kardinal_local.plane.storage.entries import Change, Entry, make_entry
from kardinal_local.plane.storage.history import Subscription
from kardinal_local.plane.storage.store import Store

__all__ = ["Change", "Committed", "Entry", "Store", "Subscription", "make_entry"]
