"""Hostile trace files are refused in under a second and under 200 MB.

Each is built and opened in a process of its own, which holds nothing but the reader.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "assets" / "traces"
HEAD = '{"specviz_trace":1,"pair":{"name":"a","target":"b"},"prompt":"'
FACE = "\\U0001f600"
# Expressions for the bytes of a file of just under the largest size.
HOSTILE = {
    "lists": "b'[' + b'[],' * 3_900_000 + b'[]]'",
    "objects": "b'[' + b'{},' * 3_900_000 + b'{}]'",
    "numbers": "b'[' + b'1.5,' * 2_900_000 + b'1]'",
    "short strings": "b'[' + b'\"ab\",' * 1_690_000 + b'1]'",
    "short strings and a wide character":
        f"('[\"{FACE}\",' + '\"ab\",' * 1_690_000 + '1]').encode()",
    "one text": f"('{HEAD}' + '{FACE}' * 2_900_000 + '\"}}').encode()",
    "keys": "b'{' + b','.join(b'\"%d\":0' % i for i in range(490_000)) + b'}'",
    "depth": "b'[' * 450_000 + b']' * 450_000",
    "depth of objects": "b'{\"a\":' * 90_000 + b'0' + b'}' * 90_000",
    "long numbers": "b'[' + b','.join([b'9' * 4000] * 2_900) + b']'",
    "not UTF-8 at the very end": "b'\"' + b'a' * 11_900_000 + b'\\xff\"'",
}  # fmt: skip
OPEN = r"""
import re, time
from specviz.trace import TraceError, load_trace
data = {expression}
assert len(data) <= 12_000_000, len(data)
begin = time.process_time()
try:
    load_trace(data)
    print("loaded")
except TraceError as error:
    print(str(error)[:200])
seconds = time.process_time() - begin
peak = re.search(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())
megabytes = int(peak[1]) / 1024
print(seconds, megabytes)
"""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the peak memory of a process is read from /proc"
)


def opened(expression: str) -> tuple[str, float, float]:
    """What loading said, the seconds of this process's own time, and its peak memory in MB."""
    command = [sys.executable, "-c", OPEN.format(expression=expression)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    message, figures = done.stdout.rsplit("\n", 2)[:2]
    seconds, megabytes = map(float, figures.split())
    return message, seconds, megabytes


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_quickly_and_in_little_memory(name):
    message, seconds, megabytes = opened(HOSTILE[name])
    assert message != "loaded"
    assert seconds < 1
    assert megabytes < 200


def test_the_largest_real_trace_is_refused_at_its_last_token_as_quickly():
    """A long true trace whose only fault is at the very end."""
    build = f"""(lambda d, r: (
        d.update(runs=[{{**d["runs"][0], "rounds": [
            {{**r[i % len(r)], "index": i, "position": 0}} for i in range(11_600_000 // 2_300)
        ]}}]),
        __import__("json").dumps(d, ensure_ascii=False, separators=(",", ":")).encode(),
    )[1])(*(lambda d: (d, d["runs"][0]["rounds"]))(
        __import__("json").loads(open({str(GALLERY / "sampling.json")!r}, encoding="utf-8").read())
    ))"""
    message, seconds, megabytes = opened(build.replace("\n", " "))
    assert "position: expected" in message
    assert seconds < 1
    assert megabytes < 200
