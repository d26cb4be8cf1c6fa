"""The commands that this package adds to `kardinal`, registered as entry points of the group `kardinal.commands`."""
