"""Everything that only runs on a laptop: the local plane, the simulator, the stack and the commands that start them."""
