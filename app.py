"""The page: ``python app.py``, and what Hugging Face Spaces runs."""

import contextlib
import os
import sys

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
with contextlib.suppress(ImportError):
    import spaces  # noqa: F401  (on ZeroGPU it must come before torch)

from specviz.host import Host, HostError
from specviz.ui import build, launch_options

if __name__ == "__main__":
    try:
        demo = build(host=Host.from_environment(os.environ))
    except HostError as error:
        sys.exit(f"specviz cannot start: {error}")
    demo.launch(**launch_options())
