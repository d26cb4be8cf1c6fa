"""Open the commits that the edits of a promotion read besides the files of the environment (`edit_sources`)."""
