"""The host's settings: read strictly, and what they allow."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from specviz.catalogue import catalogue
from specviz.host import OWN_MACHINE, Host, HostError
from specviz.records import SettingsError

NAMES = [spec.name for spec in catalogue()]
LISTED = {(spec.target, spec.draft) for spec in catalogue()}


def host(**variables: str) -> Host:
    return Host.from_environment({f"SPECVIZ_{name}": value for name, value in variables.items()})


def refused(one: Host, target: str, draft: str = "") -> bool:
    try:
        one.check_models(target, draft, LISTED)
    except SettingsError:
        return True
    return False


def test_without_variables_the_host_is_a_persons_own_machine():
    assert Host.from_environment({"PATH": "/bin"}) == OWN_MACHINE == Host()
    assert OWN_MACHINE.other_models
    assert OWN_MACHINE.folders is None


@pytest.mark.parametrize("environ", [{"SPACE_ID": "me/specviz"}, {"SPECVIZ_PUBLIC": "1"}])
def test_a_public_host_is_closed_and_has_tighter_limits(environ):
    public = Host.from_environment(environ)
    assert not public.other_models
    assert public.folders == ()
    limits = ("max_new_tokens", "max_seconds", "max_prompt_characters", "max_waiting", "max_runs")
    for limit in limits:
        assert getattr(public, limit) < getattr(OWN_MACHINE, limit)


def test_a_space_can_be_declared_not_public_and_a_public_host_be_opened():
    own = {"SPACE_ID": "me/mine", "SPECVIZ_PUBLIC": "0"}
    assert Host.from_environment(own) == OWN_MACHINE
    opened = Host.from_environment({"SPACE_ID": "me/mine", "SPECVIZ_OTHER_MODELS": "1"})
    assert opened.other_models
    assert opened.folders == ()


def test_every_variable_is_read(tmp_path):
    given = host(
        PAIR=NAMES[1],
        PAIRS=f"{NAMES[0]}, {NAMES[1]}",
        OTHER_MODELS="0",
        FOLDERS=f"{tmp_path}{os.pathsep}{tmp_path}",
        MAX_NEW_TOKENS="64",
        MAX_SECONDS="30",
        MAX_PROMPT_CHARACTERS="1000",
        MAX_WAITING="3",
        MAX_RUNS="50",
        GALLERY="1",
        GPU_SECONDS="90",
        CACHE="/somewhere",
    )
    assert given == Host(
        NAMES[1], (NAMES[0], NAMES[1]), False, (tmp_path, tmp_path), 64, 30, 1000, 3, 50, True, 90
    )


def test_every_variable_stands_in_the_readme():
    table = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    with pytest.raises(HostError) as raised:
        host(UNKNOWN="1")
    names = set(re.findall(r"SPECVIZ_\w+", str(raised.value))) - {"SPECVIZ_UNKNOWN"}
    assert len(names) > 10
    assert {name for name in names if f"| `{name}` |" not in table} == set()


def test_an_empty_variable_counts_as_unset():
    assert host(PAIRS="", MAX_SECONDS=" ", GALLERY="", FOLDERS="") == OWN_MACHINE


@pytest.mark.parametrize(
    "name, value, takes",
    [
        ("PAIR", "no such pair", NAMES[0]),
        ("PAIRS", f"{NAMES[0]},nothing", NAMES[1]),
        ("OTHER_MODELS", "yes", "1 for yes or 0 for no"),
        ("PUBLIC", "true", "1 for yes or 0 for no"),
        ("GALLERY", "2", "1 for yes or 0 for no"),
        ("FOLDERS", "relative/folder", "whole paths of folders that exist"),
        ("FOLDERS", "/no/such/folder", "whole paths of folders that exist"),
        ("MAX_NEW_TOKENS", "0", "a whole number from 1 to 100,000"),
        ("MAX_NEW_TOKENS", "1e9", "a whole number"),
        ("MAX_NEW_TOKENS", "٤٢", "a whole number"),
        ("MAX_SECONDS", "-5", "a whole number"),
        ("MAX_SECONDS", "9" * 5000, "a whole number"),
        ("MAX_PROMPT_CHARACTERS", "many", "a whole number"),
        ("MAX_WAITING", "3.5", "a whole number"),
    ],
)
def test_a_wrong_value_is_refused_with_the_variable_and_what_it_takes(name, value, takes):
    with pytest.raises(HostError) as raised:
        host(**{name: value})
    assert f"SPECVIZ_{name} " in str(raised.value)
    assert takes in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_misspelt_variable_is_refused_with_those_there_are():
    with pytest.raises(HostError, match=r"no setting SPECVIZ_MAX_TOKENS.*SPECVIZ_MAX_NEW_TOKENS"):
        host(MAX_TOKENS="64")


def test_the_first_pair_must_be_one_of_those_on_offer():
    with pytest.raises(HostError, match=r"SPECVIZ_PAIR is .* which SPECVIZ_PAIRS leaves out"):
        host(PAIR=NAMES[0], PAIRS=NAMES[1])


def test_a_run_larger_than_the_host_allows_is_refused_with_the_limit():
    small = Host(max_new_tokens=64, max_prompt_characters=10)
    small.check("ten letter", 64)
    with pytest.raises(SettingsError, match="65; this host runs 64 at most"):
        small.check("short", 65)
    with pytest.raises(SettingsError, match="11 characters long; this host takes 10 at most"):
        small.check("eleven lett", 1)


# --- models --------------------------------------------------------------------------------


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """An allowed folder with models in it, and what must not be read beside it."""
    for name in ("allowed/model", "allowed-not/model", "secret"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.json").write_text("{}")
    (tmp_path / "allowed/linked").symlink_to(tmp_path / "secret")
    (tmp_path / "allowed/model-of-links").mkdir()
    (tmp_path / "allowed/model-of-links/config.json").symlink_to(tmp_path / "secret/config.json")
    return tmp_path


def hostile(places: Path) -> list[str]:
    allowed = places / "allowed"
    return [
        "/",
        "/etc",
        "/etc/passwd",
        str(places),
        str(places / "secret"),
        str(places / "allowed-not/model"),
        str(allowed / "../secret"),
        str(allowed / "model/../../secret"),
        str(allowed / "linked"),
        str(allowed / "model-of-links"),
        os.path.relpath(places / "secret"),
        "..",
        ".",
        "../../../../../../etc",
        "~",
        "~root",
        "~nobody-of-that-name/x",
        f"file://{places}/secret",
        "file:///etc/passwd",
        "https://example.com/model",
        "\\\\server\\share",
        "C:\\Windows",
        "assets",
        "specviz/ui",
        "owner/name/deeper",
        "owner/../name",
        "owner/na\0me",
        "%2e%2e/%2e%2e/etc",
        "a" * 5000,
    ]


def test_on_a_public_host_no_source_but_the_catalogue_is_allowed():
    public = host(PUBLIC="1")
    assert not refused(public, *next(iter(LISTED)))
    for source in ("HuggingFaceTB/SmolLM2-135M", "gpt2", "/etc", "embedded"):
        assert refused(public, source)
        assert refused(public, "embedded", source)


def test_where_other_models_are_allowed_a_path_is_still_none(places):
    opened = host(PUBLIC="1", OTHER_MODELS="1")
    assert not refused(opened, "owner/name", "gpt2")
    for source in [*hostile(places), str(places / "allowed/model")]:
        assert refused(opened, source), source
        assert refused(opened, "owner/name", source), source


def test_a_path_must_lie_in_an_allowed_folder_after_every_link_is_followed(places):
    opened = host(PUBLIC="1", OTHER_MODELS="1", FOLDERS=str(places / "allowed"))
    assert not refused(opened, str(places / "allowed/model"), "owner/name")
    assert not refused(opened, str(places / "allowed/../allowed/model"))
    for source in hostile(places):
        assert refused(opened, source), source


def test_a_refusal_does_not_tell_whether_a_folder_exists(places):
    opened = host(PUBLIC="1", OTHER_MODELS="1")
    told = []
    for source in (str(places / "secret"), str(places / "absent")):
        with pytest.raises(SettingsError) as raised:
            opened.check_models(source, "", LISTED)
        told.append(str(raised.value).replace(source, "PLACE"))
    assert told[0] == told[1]


def test_an_allowed_folder_may_itself_be_a_link(places):
    (places / "link").symlink_to(places / "allowed")
    opened = host(FOLDERS=str(places / "link"))
    assert not refused(opened, str(places / "link/model"))


def test_on_ones_own_machine_any_folder_may_be_typed_in(places):
    assert not refused(OWN_MACHINE, str(places / "secret"), "owner/name")


def test_a_shipped_draft_may_be_chosen_for_another_target(places):
    opened = host(PUBLIC="1", OTHER_MODELS="1")
    shipped = next(spec.draft for spec in catalogue() if spec.target == "embedded" and spec.draft)
    assert not refused(opened, "owner/name", shipped)
