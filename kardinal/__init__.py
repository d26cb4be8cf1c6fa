"""The code that the controller, the agent and the command line share."""
