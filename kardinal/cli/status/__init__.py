"""`kardinal status`: where a Pipeline stands, what holds it, and what to type next.

`reading` takes the objects from the API server, `view` makes a value of them, `advice` the next commands, `screen` the
lines for a terminal, `following` the watch; `command` are the commands.
"""
