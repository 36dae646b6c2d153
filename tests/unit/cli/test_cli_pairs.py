"""``specviz pairs`` and ``specviz fetch``."""

from __future__ import annotations

import json

from specviz import catalogue as offered
from specviz.cli import main


def test_pairs_lists_every_pair_with_its_need(capsys):
    assert main(["pairs"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [s.name for s in offered.catalogue()]
    assert all(" GB" in line for line in lines)


def test_pairs_json_is_one_object(capsys):
    assert main(["pairs", "--json", "--dtype", "float32"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed["dtype"] == "float32"
    names = [row["name"] for row in listed["pairs"]]
    assert names == [spec.name for spec in offered.catalogue()]
    assert all(row["memory"] > 0 and "why_not" in row for row in listed["pairs"])


def test_fetch_prints_the_folder_and_nothing_else(tmp_path, monkeypatch, capsys):
    from specviz import weights

    def prepare(progress):
        progress("Downloading", 0.5)
        return tmp_path

    monkeypatch.setattr(weights, "embedded_target", prepare)
    assert main(["fetch"]) == 0
    assert capsys.readouterr().out == f"{tmp_path}\n"


def test_fetch_that_fails_exits_1_with_one_line(monkeypatch, capsys):
    from specviz import weights

    def fail(progress):
        progress("Downloading", 0.5)
        raise weights.WeightsError("nothing is reachable;\nconnect and try again")

    monkeypatch.setattr(weights, "embedded_target", fail)
    assert main(["fetch"]) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "specviz: nothing is reachable; connect and try again\n"
