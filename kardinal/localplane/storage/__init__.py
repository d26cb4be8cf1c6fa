"""Objects and their revisions: what is now, what was a moment ago, and the file that survives the process.

    store      every object, written through to SQLite
    history    the recent changes, and those who follow them

Knows no kind and no request.
"""

from kardinal.localplane.storage.history import Change, Entry, Subscription
from kardinal.localplane.storage.store import Store, make_entry

__all__ = ["Change", "Entry", "Store", "Subscription", "make_entry"]
