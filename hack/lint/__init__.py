"""Checks of `make lint` that other linters lack.

assignments   assignments of unrelated values on one line
citations     citations of pages and headings that do not exist
"""
