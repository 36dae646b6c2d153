"""``python -m specviz.distill``."""

import sys

from specviz.distill.commands import main

if __name__ == "__main__":
    sys.exit(main())
