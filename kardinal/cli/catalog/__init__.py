"""The commands below `kardinal catalog`, which compile and show catalogs without a cluster.

sources    repositories, read with the Git configuration and the credentials of the caller
"""
