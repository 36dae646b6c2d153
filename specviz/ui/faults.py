"""What to tell a person when something has failed."""

from __future__ import annotations

import logging
import sys

from specviz.faults import disk_full, out_of_memory
from specviz.records import PairInfo

DISK_FULL = (
    "The disk of the machine that runs this page is full. Everything measured so far is kept here:"
    " free some space and try again."
)
log = logging.getLogger(__name__)


def explain(error: BaseException, pair: PairInfo | None = None) -> str:
    """What to tell a person. Errors that specviz raises say what to do and are told as they
    are; of others the terminal gets the details. ``pair`` is what was running."""
    if _ours(error):
        return str(error)
    log.error("something failed in a thread of its own", exc_info=error)
    if out_of_memory(error):
        # Where memory ran out there is a torch; where only traces are shown there may be none.
        from specviz.pairs.memory import ran_out

        if pair is None:
            return ran_out(error)
        size = pair.target_parameters + pair.draft_parameters
        return ran_out(error, pair.name, size, running=True)
    if disk_full(error):
        return DISK_FULL
    return (
        f"Something failed inside specviz ({type(error).__name__}: {error})."
        " The page still works: change a setting and run again. The terminal has the details."
    )


def free_memory() -> None:
    """Give back what a run that failed has left behind."""
    if "torch" in sys.modules:
        from specviz.pairs.memory import let_go

        let_go()


def _ours(error: BaseException) -> bool:
    """Whether the message was written in specviz: its own classes, and ValueErrors it raised."""
    if type(error).__module__.startswith("specviz."):
        return True
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    name = place.tb_frame.f_globals.get("__name__", "") if place else ""
    return isinstance(error, ValueError) and name.startswith("specviz.")
