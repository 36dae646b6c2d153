"""From measured runs to the rows of a table: one row a setup, or one a setup and prompt kind.

Each figure of a row is pooled: taken once over the rounds of all its runs together, by the
definitions in ``metrics``. Beside it stand mean, median and standard deviation of the same figure
taken run by run, and for the speedup a bootstrap interval. None means: was not measured.
"""

from specviz.rows.setups import Measured, Setup
from specviz.rows.table import Row, Spread, Table, pooled, rows
from specviz.rows.written import to_csv, to_plain

__all__ = [
    "Measured",
    "Row",
    "Setup",
    "Spread",
    "Table",
    "pooled",
    "rows",
    "to_csv",
    "to_plain",
]
