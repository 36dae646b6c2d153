"""What is asked of CUDA to capture some work, on a stand-in for it."""

from __future__ import annotations

from contextlib import contextmanager

import pytest
import torch

from specviz import graphs
from specviz.graphs import WARM_UPS, CudaCapture

SECOND = torch.device("cuda", 1)
OWN = "the thread's own stream"


class FakeCuda:
    """Tells what ran where. As torch's own, ``graph`` does not bring the stream back where the
    capture fails, and nothing that it captures runs."""

    def __init__(self, monkeypatch):
        self.now, self.device, self.capturing, self.streams = OWN, 0, False, 0
        self.ran: list[tuple[str, int, bool]] = []
        for name in ("graph", "stream", "device"):
            monkeypatch.setattr(torch.cuda, name, getattr(self, f"_{name}"))
        monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: self)
        monkeypatch.setattr(torch.cuda, "Stream", self._made)
        monkeypatch.setattr(torch.cuda, "current_stream", lambda: FakeStream(self.now))
        monkeypatch.setattr(torch.cuda, "graph_pool_handle", object)
        graphs.capture_stream.cache_clear()

    def work(self):
        self.ran.append((self.now, self.device, self.capturing))
        return (torch.ones(2),)

    def replay(self):
        pass

    def _made(self, device):
        self.streams += 1
        return FakeStream(f"stream {self.streams} of {device}")

    @contextmanager
    def _graph(self, graph, pool, stream, *, capture_error_mode):
        self.now, self.capturing = stream.name, True
        yield
        self.now, self.capturing = OWN, False

    @contextmanager
    def _stream(self, stream):
        before, self.now = self.now, stream.name
        try:
            yield
        finally:
            self.now = before

    @contextmanager
    def _device(self, device):
        before, self.device = self.device, device.index
        try:
            yield
        finally:
            self.device = before


class FakeStream:
    def __init__(self, name):
        self.name = name

    def wait_stream(self, other):
        pass


@pytest.fixture
def cuda(monkeypatch):
    yield FakeCuda(monkeypatch)
    graphs.capture_stream.cache_clear()


def test_work_is_warmed_up_and_captured_on_one_stream_of_the_models_own_gpu(cuda):
    capture = CudaCapture(SECOND)
    capture(cuda.work)
    capture(cuda.work)
    once = [("stream 1 of cuda:1", 1, False)] * WARM_UPS + [("stream 1 of cuda:1", 1, True)]
    assert cuda.ran == once * 2
    assert (cuda.now, cuda.device) == (OWN, 0)


def test_models_on_one_gpu_share_the_stream_and_another_gpu_has_its_own(cuda):
    for device in (SECOND, SECOND, torch.device("cuda", 0)):
        CudaCapture(device)(cuda.work)
    assert cuda.streams == 2


def test_a_capture_that_fails_leaves_the_thread_on_its_own_stream(cuda):
    def refused():
        cuda.work()
        if cuda.capturing:
            raise RuntimeError("operation not permitted when stream is capturing")
        return (torch.ones(2),)

    capture = CudaCapture(SECOND)
    with pytest.raises(RuntimeError, match="not permitted"):
        capture(refused)
    assert (cuda.now, cuda.device) == (OWN, 0)
    cuda.capturing = False
    capture(cuda.work)  # the next may try


def test_results_of_a_replay_are_the_callers_own(cuda):
    replay = CudaCapture(SECOND)(cuda.work)
    (first,), (second,) = replay(), replay()
    first.zero_()
    assert second.tolist() == [1, 1]
