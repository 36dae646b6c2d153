"""Models from the Hub."""

from __future__ import annotations

import errno

import huggingface_hub
import pytest
from huggingface_hub import errors

from specviz.weights import WeightsError, hub


def response_error(kind):
    import httpx

    request = httpx.Request("GET", "http://hub.test")
    error = kind.__new__(kind)
    Exception.__init__(error, "500 Server\nError")
    error.response = httpx.Response(500, request=request)
    return error


@pytest.mark.parametrize(
    "error, words",
    [
        (response_error(errors.GatedRepoError), "hf auth login"),
        (response_error(errors.RepositoryNotFoundError), "no such model"),
        (response_error(errors.HfHubHTTPError), "refused"),
        (errors.HFValidationError("bad"), "neither a folder here nor a Hub id"),
        (errors.LocalEntryNotFoundError("offline"), "not reachable"),
        (errors.OfflineModeIsEnabled("offline"), "not reachable"),
        (OSError(errno.ENOSPC, "full"), "disk of the Hub cache is full"),
        (RuntimeError("odd\nthing"), "odd thing"),
    ],
)
def test_hub_errors_are_one_clear_sentence(error, words, monkeypatch):
    def snapshot(*given, **named):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    with pytest.raises(WeightsError) as caught:
        hub.hub_folder("owner/name")
    assert str(caught.value).startswith("owner/name: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_hub_download_reports_its_share_and_takes_safetensors_only(tmp_path, monkeypatch, capfd):
    asked = {}

    def snapshot(repository, *, allow_patterns, ignore_patterns, tqdm_class):
        asked["patterns"] = allow_patterns
        bar = tqdm_class(total=0, unit="B", unit_scale=True, desc="bytes")
        bar.total = 100
        for _ in range(10):
            bar.update(10)
            bar.refresh()
        bar.close()
        return str(tmp_path)

    seen = []
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    folder = hub.hub_folder("owner/name", lambda message, share: seen.append(share))
    assert folder == tmp_path
    assert seen[-1] == 1.0
    assert capfd.readouterr().err == ""
    assert not any(pattern.endswith((".bin", ".pt", ".py", "*")) for pattern in asked["patterns"])
