"""Fetching from the Hub, and keeping other people's progress bars off the terminal."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Progress = Callable[[str, float | None], None]
"""Called with what is being done and, where it is known, the fraction of it that is done."""

PATTERNS = ["*.safetensors", "*.json", "*.txt", "*.jinja", "tokenizer.model"]
IGNORED = ["*/*", "consolidated*", "*.fp16.*"]
_ONE_AT_A_TIME = threading.Lock()


class WeightsError(RuntimeError):
    """Model files cannot be had; the message says why and what to do."""


def silent(message: str, fraction: float | None = None) -> None:
    """A progress callback that tells nobody."""


def hub_folder(repository: str, progress: Progress = silent) -> Path:
    """The local snapshot of a Hub repository's safetensors, config and tokenizer.

    What the Hub cache holds already is not fetched again. Raises WeightsError, in one sentence,
    when there is no such repository, access was not granted, or the Hub is not reachable.
    """
    from huggingface_hub import errors, snapshot_download

    progress(f"Looking for {repository} on the Hub", None)
    try:
        return Path(
            snapshot_download(
                repository,
                allow_patterns=PATTERNS,
                ignore_patterns=IGNORED,
                tqdm_class=_reporting_bar(f"Downloading {repository}", progress, unit="B"),
            )
        )
    except errors.GatedRepoError:
        reason = (
            "its owner grants access on request: ask for it on the model's page, then log in"
            " with: hf auth login"
        )
    except errors.RepositoryNotFoundError:
        reason = "the Hub has no such model (or it is private and you are not logged in)"
    except errors.HFValidationError:
        reason = "this is neither a folder here nor a Hub id such as owner/name"
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled, ConnectionError):
        reason = "the Hub is not reachable and no copy is on this machine"
    except errors.HfHubHTTPError as error:
        reason = f"the Hub refused it ({one_line(error)})"
    except Exception as error:  # the client's HTTP library is not part of its interface
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            reason = "the disk of the Hub cache is full; free some space or set HF_HOME"
        else:
            reason = f"the download failed ({one_line(error)})"
    raise WeightsError(f"{repository}: {reason}")


def _reporting_bar(message: str, progress: Progress, unit: str) -> Any:
    """A tqdm class that draws nothing and passes on the share of its ``unit`` that is done."""
    from tqdm.auto import tqdm

    class Bar(tqdm):
        def __init__(self, *given: Any, **named: Any) -> None:
            self.reports = named.get("unit", "it") == unit
            super().__init__(*given, **named | {"disable": False})

        def display(self, *given: Any, **named: Any) -> bool:
            if self.reports and self.total:
                progress(message, min(self.n / self.total, 1.0))
            return True

        def close(self) -> None:
            self.disable = True

    return Bar


@contextmanager
def quiet_transformers(message: str, progress: Progress = silent) -> Iterator[None]:
    """Let transformers read a model, with its progress bars and advice kept off the terminal.

    One thread at a time: while it reads a model it changes torch's default dtype and ways of
    initialising for the whole process, and two that overlap leave weights unread without a word.
    Its GGUF reader draws a bar that no setting turns off; its counts go to ``progress`` with
    ``message`` instead.
    """
    with _ONE_AT_A_TIME, _quiet(message, progress):
        yield


@contextmanager
def _quiet(message: str, progress: Progress) -> Iterator[None]:
    from transformers import modeling_gguf_pytorch_utils as gguf_reader
    from transformers.utils import logging

    bars, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    gguf_bar = gguf_reader.tqdm
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    gguf_reader.tqdm = _reporting_bar(message, progress, unit="it")
    try:
        yield
    finally:
        gguf_reader.tqdm = gguf_bar
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def one_line(error: object) -> str:
    """An error as one line of at most 200 characters."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= 200 else text[:197] + "..."
