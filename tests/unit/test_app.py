"""``import app`` only makes names: nothing is served, fetched, written or started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WATCHED_IMPORT = """
import json, os, sys, threading
seen = []

def watch(event, arguments):
    if event in ("socket.connect", "socket.bind", "subprocess.Popen", "os.mkdir", "os.rename"):
        seen.append([event, str(arguments)[:200]])
    elif event == "open" and isinstance(arguments[0], (str, bytes)):
        flags = arguments[2] or 0
        if flags & (os.O_WRONLY | os.O_RDWR) and os.fsdecode(arguments[0]) != os.devnull:
            seen.append([event, os.fsdecode(arguments[0])])

sys.addaudithook(watch)
import app
# Python itself tries with a passing file where temporary ones can go.
seen = [one for one in seen if one[0] != "open" or os.path.exists(one[1])]
threads = [thread.name for thread in threading.enumerate()]
print(json.dumps({"seen": seen, "threads": threads, "heavy": "torch" in sys.modules}))
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What importing the app did, in a process of its own."""
    home = tmp_path_factory.mktemp("home")
    result = subprocess.run(
        [sys.executable, "-B", "-c", WATCHED_IMPORT],
        cwd=ROOT,
        env={**os.environ, "HOME": str(home), "SPECVIZ_CACHE": str(home / "cache")},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(result.stdout.splitlines()[-1])


def test_nothing_is_fetched_or_left_written(found):
    # Gradio writes one file into its own folder the first time it is ever imported.
    seen = [one for one in found["seen"] if Path(one[1]).name != "hash_seed.txt"]
    assert seen == []


def test_no_thread_is_started(found):
    assert found["threads"] == ["MainThread"]


BUILT = """
import sys
from specviz.host import Host
from specviz.ui import build
build(host=Host())
print([name for name in ("torch", "transformers") if name in sys.modules])
"""


def test_torch_waits_until_the_page_is_up(found):
    assert found["heavy"] is False
    built = subprocess.run(
        [sys.executable, "-B", "-c", BUILT],
        cwd=ROOT,
        env=os.environ | {"GRADIO_ANALYTICS_ENABLED": "False"},
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert built.stdout.split("\n")[-2] == "[]"
