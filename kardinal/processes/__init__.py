"""Run programs as child processes: killable, with limits, and isolated from this process.

children        a child with a deadline, limits on its files and text, killed with all processes that it started
workers         a child that answers one request after the other
memory_shares   limits on the memory of each child, and of all children of a kind together
private_files   files that a child inherits, for secrets that must not be in arguments or environment variables
isolation       the isolation of a child by the kernel: no sockets, and only its own files
confined        the program that isolates its own process and then becomes the child
launchers       an isolated child whose launcher was started before it was needed
threads         the guard against blocking calls on the event loop
errors          the errors of a child that was killed
"""
