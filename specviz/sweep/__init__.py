"""A grid of measured runs: which setups on which prompts, made one by one, kept in a file.

Every run is a race against its own baseline, so that whatever else the machine does hits both
alike; all setups take turns on each prompt; warming up is on no clock.
"""

from specviz.sweep.comparison import Comparison, Generated, compare
from specviz.sweep.journal import Bench, Journal, JournalError, read_bench
from specviz.sweep.plan import Job, Plan, PlanError, cross, sources
from specviz.sweep.running import Failed, Sweep, never

__all__ = [
    "Bench",
    "Comparison",
    "Failed",
    "Generated",
    "Job",
    "Journal",
    "JournalError",
    "Plan",
    "PlanError",
    "Sweep",
    "compare",
    "cross",
    "never",
    "read_bench",
    "sources",
]
