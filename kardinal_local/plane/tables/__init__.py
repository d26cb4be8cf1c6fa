"""Make the tables that `kubectl get` prints.

columns         the columns of custom kinds, and the Table that carries the cells
builtin         the columns of the built-in kinds
cells, pods     what stands in them
jsonpath        the paths that columns of custom kinds are written in
"""

from kardinal_local.plane.tables.builtin import builtin_columns
from kardinal_local.plane.tables.columns import Column, custom_columns, table

__all__ = ["Column", "builtin_columns", "custom_columns", "table"]
