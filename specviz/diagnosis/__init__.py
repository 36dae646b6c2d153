"""Why is it not faster? What limits a run, by how much, and what to do, in plain words."""

from specviz.diagnosis.of_run import diagnose, setup_of
from specviz.diagnosis.of_sweep import recommend
from specviz.diagnosis.words import Advice, Diagnosis, Limit, Point

__all__ = ["Advice", "Diagnosis", "Limit", "Point", "diagnose", "recommend", "setup_of"]
