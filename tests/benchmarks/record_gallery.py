"""Record the gallery anew, each run with its baseline, on the embedded pair.

    python tests/benchmarks/record_gallery.py [--only FILE ...] [--dtype auto]

Reads assets/traces/gallery.json, which says what is recorded, and writes the traces beside it.
Run it on a quiet machine: the times in the traces are what the page shows. Each run is done twice
and the second is kept, as on a page that has been used before.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace

from specviz.gallery import Exhibit, exhibits
from specviz.pairs import Shelf, catalogue
from specviz.race import Race
from specviz.records import Settings, Trace
from specviz.trace import dump_trace

MOST_BYTES = 250_000


def record(pair: object, exhibit: Exhibit) -> Trace:
    """One race from start to end."""
    settings = Settings(**exhibit.settings)
    race = Race(pair, exhibit.drafter, exhibit.prompt, settings)
    for _ in race.start():
        pass
    while not race.finished:
        race.advance()
    return replace(race.trace(), note=exhibit.look)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], metavar="FILE")
    parser.add_argument("--dtype", default="auto")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    spec = catalogue()[0]
    pair = Shelf().load(spec.target, spec.draft, options.dtype, name=spec.name)
    for exhibit in exhibits():
        if options.only and exhibit.file not in options.only:
            continue
        record(pair, exhibit)
        data = dump_trace(record(pair, exhibit)).encode("utf-8")
        if len(data) > MOST_BYTES:
            raise SystemExit(f"{exhibit.file} would be {len(data)} bytes; decode fewer tokens")
        exhibit.path.write_bytes(data)
        print(f"{exhibit.file}: {len(data)} bytes", flush=True)


if __name__ == "__main__":
    main()
