"""``specviz run`` on a tiny pair."""

from __future__ import annotations

import checkpoints
import pytest

from specviz.cli import main


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("pair")
    checkpoints.save(root / "target")
    checkpoints.save(root / "draft", seed=1, layers=1)
    return root


@pytest.fixture
def run(folders, capsys):
    """``run`` on the tiny pair; gives status, stdout, stderr."""

    def call(*arguments, pair=True):
        chosen = ["--target", str(folders / "target"), "--draft", str(folders / "draft")]
        given = ["run", *(chosen if pair else []), "--dtype", "float32", *arguments]
        status = main(given)
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call
