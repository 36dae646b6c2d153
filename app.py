"""The page: ``python app.py``, and what Hugging Face Spaces runs."""

import contextlib
import os

os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
with contextlib.suppress(ImportError):
    import spaces  # noqa: F401  (on ZeroGPU it must come before torch)

from specviz.ui import build, launch_options

demo = build()

if __name__ == "__main__":
    demo.launch(**launch_options())
