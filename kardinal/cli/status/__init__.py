"""`kardinal status` and `kardinal watch`: the status of a Pipeline, its holds, and the next commands.

`kardinal.promotion.views` computes a `StatusView` from the objects; this package displays it:

command     the commands
screen      the lines for a terminal, and the lines of changes
document    the JSON document
following   display again after each change; `--wait` of other commands
live        the screen that is redrawn in place
"""
