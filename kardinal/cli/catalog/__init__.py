"""The commands below `kardinal catalog`, which compile and show catalogs without a cluster.

group         the declarations of the commands
sources       repositories, read with the Git configuration and the credentials of the caller
session       the documents of `-f`, the processes that merge and render, and errors for people and programs
directories   writing a catalog into a directory of the user
lieutenant    clusters and tenants from the API of a Lieutenant
"""
